#include "runner/stats/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "runner/record/names.hpp"
#include "runner/stats/interval.hpp"
#include "runner/stats/summary.hpp"

namespace kestrel {
namespace {

constexpr int rounds_per_super_round = 6;

using RoundWindows = std::array<const Window*, 3>;  // by ArmRole; null if not measured
using Rounds = std::map<RoundKey, RoundWindows>;

Rounds collect(const Plan& plan, const std::vector<Window>& windows) {
    Rounds rounds;
    for (const Window& window : windows) {
        const bool planned = window.replicate >= 0 && window.replicate < plan.replicates && window.super_round >= 0 &&
                             window.super_round < plan.super_rounds && window.round >= 0 && window.round < rounds_per_super_round;
        if (!planned) throw std::invalid_argument("a window lies outside the plan");
        const Window*& place = rounds[{window.replicate, window.super_round, window.round}].at(index_of(window.arm));
        if (place != nullptr) throw std::invalid_argument("a window occurs twice");
        place = &window;
    }
    return rounds;
}

bool is_complete(const RoundWindows& round) {
    return std::all_of(round.begin(), round.end(), [&round](const Window* window) {
        return window != nullptr && window->window_ns > 0 && !window->token_ns.empty() &&
               window->token_ns.size() == round[0]->token_ns.size();
    });
}

// The replicates in which every planned round is complete.
std::set<int> complete_replicates(const Plan& plan, const Rounds& rounds) {
    std::map<int, int> finished;
    for (const auto& [key, round] : rounds) finished[key[0]] += is_complete(round) ? 1 : 0;
    std::set<int> complete;
    for (const auto& [replicate, count] : finished) {
        if (count == plan.super_rounds * rounds_per_super_round) complete.insert(replicate);
    }
    return complete;
}

// One contrast for each replicate, base against `other`.
std::vector<double> replicate_contrasts(const Rounds& rounds, ArmRole other) {
    std::map<int, std::map<int, std::vector<double>>> contrasts;  // [replicate][super-round]
    for (const auto& [key, round] : rounds) {
        const double base_ms = round[index_of(ArmRole::base)]->ms_per_token();
        const double other_ms = round[index_of(other)]->ms_per_token();
        contrasts[key[0]][key[1]].push_back(std::log(base_ms) - std::log(other_ms));
    }
    std::vector<double> result;
    for (const auto& [replicate, super_rounds] : contrasts) {
        std::vector<double> means;
        for (const auto& [index, values] : super_rounds) means.push_back(mean(values));
        result.push_back(hodges_lehmann(means));
    }
    return result;
}

// The candidate's contrasts by two measures that a robust one is blind to: rare slow tokens.
struct TailContrasts {
    std::vector<double> of_means;
    std::vector<double> of_p99;
};

TailContrasts tail_contrasts(const Rounds& rounds) {
    struct Times {
        std::vector<double> window_ms;
        std::vector<double> token_ns;
    };
    std::map<int, std::array<Times, 2>> replicates;  // base, candidate
    for (const auto& [key, round] : rounds) {
        const std::array<const Window*, 2> arms{round[index_of(ArmRole::base)], round[index_of(ArmRole::candidate)]};
        for (std::size_t i = 0; i < arms.size(); ++i) {
            Times& times = replicates[key[0]].at(i);
            times.window_ms.push_back(arms.at(i)->ms_per_token());
            for (const std::int64_t ns : arms.at(i)->token_ns) times.token_ns.push_back(static_cast<double>(ns));
        }
    }
    TailContrasts result;
    for (const auto& [index, arms] : replicates) {
        const double base_p99 = quantile(arms[0].token_ns, 0.99);
        const double candidate_p99 = quantile(arms[1].token_ns, 0.99);
        result.of_means.push_back(std::log(mean(arms[0].window_ms)) - std::log(mean(arms[1].window_ms)));
        // A clock too coarse to time a token says nothing about the slowest ones.
        result.of_p99.push_back(base_p99 > 0.0 && candidate_p99 > 0.0 ? std::log(base_p99) - std::log(candidate_p99)
                                                                      : result.of_means.back());
    }
    return result;
}

Interval difference_interval(std::vector<double> values, const std::vector<double>& subtract, double confidence) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= subtract[i];
    return t_interval(values, confidence);
}

ArmSummary summarise(const Rounds& rounds, ArmRole arm) {
    std::vector<double> window_ms;
    std::vector<double> token_ms;
    for (const auto& [key, round] : rounds) {
        const Window& window = *round[index_of(arm)];
        window_ms.push_back(window.ms_per_token());
        for (const std::int64_t ns : window.token_ns) token_ms.push_back(static_cast<double>(ns) / 1e6);
    }
    ArmSummary summary;
    summary.arm = arm;
    summary.windows = static_cast<int>(window_ms.size());
    if (window_ms.empty()) return summary;
    summary.mean_ms = mean(window_ms);
    summary.median_ms = median(window_ms);
    summary.min_ms = *std::min_element(window_ms.begin(), window_ms.end());
    summary.max_ms = *std::max_element(window_ms.begin(), window_ms.end());
    summary.spread_percent = spread_percent(window_ms);
    summary.p99_token_ms = quantile(token_ms, 0.99);
    summary.tokens_per_second = 1000.0 / summary.mean_ms;
    return summary;
}

}  // namespace

Estimate estimate(const Plan& plan, const std::vector<Window>& windows, const std::set<RoundKey>& flagged) {
    Rounds rounds = collect(plan, windows);
    const std::set<int> complete = complete_replicates(plan, rounds);
    std::erase_if(rounds, [&](const auto& entry) { return !complete.contains(entry.first[0]) || flagged.contains(entry.first); });

    Estimate result;
    result.replicate_d = replicate_contrasts(rounds, ArmRole::candidate);
    result.replicate_control_d = replicate_contrasts(rounds, ArmRole::control);
    result.candidate = t_interval(result.replicate_d, plan.confidence);
    result.control = t_interval(result.replicate_control_d, plan.control_confidence);
    const TailContrasts tail = tail_contrasts(rounds);
    result.mean_based = t_interval(tail.of_means, plan.confidence);
    result.p99_based = t_interval(tail.of_p99, plan.confidence);
    result.mean_minus_robust = difference_interval(tail.of_means, result.replicate_d, plan.confidence);
    result.p99_minus_robust = difference_interval(tail.of_p99, result.replicate_d, plan.confidence);
    for (const ArmRole arm : {ArmRole::base, ArmRole::control, ArmRole::candidate}) result.arms.at(index_of(arm)) = summarise(rounds, arm);
    if (rounds.empty()) return result;
    const ArmSummary& base = result.arms[index_of(ArmRole::base)];
    const ArmSummary& candidate = result.arms[index_of(ArmRole::candidate)];
    result.mean_ratio = base.mean_ms / candidate.mean_ms;
    result.p99_ratio = candidate.p99_token_ms > 0.0 ? base.p99_token_ms / candidate.p99_token_ms : 1.0;
    result.saved_ms_per_token = base.mean_ms - candidate.mean_ms;
    return result;
}

}  // namespace kestrel
