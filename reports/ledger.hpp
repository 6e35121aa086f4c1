// The service's record of itself.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

// One block for each host, device, engine and launch mode; every count with its interval.
[[nodiscard]] std::string ledger_text(const std::vector<LedgerRow>& rows);

// {"format": 1, "kind": "ledger", "rows": [...]}
[[nodiscard]] nlohmann::json ledger_json(const std::vector<LedgerRow>& rows);

// "3 of 40, 7.5 % [1.6 %, 20.4 %]"
[[nodiscard]] std::string proportion_text(const Proportion& proportion);

}  // namespace kestrel
