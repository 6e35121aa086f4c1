// A session's windows as rows of a table.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

enum class RoundDetail { super_rounds, all };

// One complete round, or the mean of a super-round's complete rounds. Both counted from 0.
struct RoundRow {
    int replicate = 0;
    int super_round = 0;
    int round = 0;               // meaningless in a super-round's row
    int rounds = 1;              // complete rounds in this row
    std::array<double, 3> ms{};  // ms/token by ArmRole
    double ratio = 0.0;          // base / candidate; of a super-round the geometric mean, as the estimate sees it
};

// Complete rounds only, in order. Rounds that lack an arm's window have no row.
[[nodiscard]] std::vector<RoundRow> round_rows(const std::vector<Window>& windows, RoundDetail detail);

// The rows as an aligned table; "" without rows.
[[nodiscard]] std::string round_table(const std::vector<Window>& windows, RoundDetail detail);

}  // namespace kestrel
