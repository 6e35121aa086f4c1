#include "reports/rounds.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/format.hpp"
#include "reports/layout.hpp"
#include "runner/record/names.hpp"

namespace kestrel {
namespace {

std::vector<RoundRow> single_rounds(const std::vector<Window>& windows) {
    std::map<std::array<int, 3>, std::array<const Window*, 3>> rounds;
    for (const Window& window : windows) {
        rounds[{window.replicate, window.super_round, window.round}].at(index_of(window.arm)) = &window;
    }
    std::vector<RoundRow> rows;
    for (const auto& [key, arms] : rounds) {
        const bool complete =
            std::all_of(arms.begin(), arms.end(), [](const Window* w) { return w != nullptr && w->ms_per_token() > 0.0; });
        if (!complete) continue;
        RoundRow row;
        row.replicate = key[0];
        row.super_round = key[1];
        row.round = key[2];
        for (std::size_t arm = 0; arm < arms.size(); ++arm) row.ms[arm] = arms[arm]->ms_per_token();
        row.ratio = row.ms[index_of(ArmRole::base)] / row.ms[index_of(ArmRole::candidate)];
        rows.push_back(row);
    }
    return rows;
}

// Rows of one super-round, which are neighbours, become one.
std::vector<RoundRow> merged(const std::vector<RoundRow>& rounds) {
    std::vector<RoundRow> rows;
    for (auto first = rounds.begin(); first != rounds.end();) {
        RoundRow row = *first;
        row.rounds = 0;
        row.ms = {};
        double log_sum = 0.0;
        for (; first != rounds.end() && first->replicate == row.replicate && first->super_round == row.super_round; ++first) {
            for (std::size_t arm = 0; arm < row.ms.size(); ++arm) row.ms[arm] += first->ms[arm];
            log_sum += std::log(first->ratio);
            ++row.rounds;
        }
        for (double& ms : row.ms) ms /= static_cast<double>(row.rounds);
        row.ratio = std::exp(log_sum / static_cast<double>(row.rounds));
        rows.push_back(row);
    }
    return rows;
}

}  // namespace

std::vector<RoundRow> round_rows(const std::vector<Window>& windows, RoundDetail detail) {
    const std::vector<RoundRow> rounds = single_rounds(windows);
    return detail == RoundDetail::all ? rounds : merged(rounds);
}

std::string round_table(const std::vector<Window>& windows, RoundDetail detail) {
    const std::vector<RoundRow> rows = round_rows(windows, detail);
    if (rows.empty()) return "";
    const bool all = detail == RoundDetail::all;
    Table table;
    for (const char* title : {"replicate", "super-round", all ? "round" : "rounds", "base", "control", "candidate", "ratio"}) {
        table.add_column(title, Align::right);
    }
    for (const RoundRow& row : rows) {
        table.add_row({std::to_string(row.replicate + 1), std::to_string(row.super_round + 1),
                       std::to_string(all ? row.round + 1 : row.rounds), ms_text(row.ms[0]), ms_text(row.ms[1]), ms_text(row.ms[2]),
                       ratio_text(row.ratio)});
    }
    return table.text();
}

}  // namespace kestrel
