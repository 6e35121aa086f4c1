#include "runner/stats/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "runner/record/names.hpp"
#include "runner/stats/interval.hpp"
#include "runner/stats/looks.hpp"
#include "runner/stats/summary.hpp"

namespace kestrel {
namespace {

constexpr int rounds_per_super_round = 6;

using RoundWindows = std::array<const Window*, 3>;  // by ArmRole; null if not measured

// The rounds of one replicate that count: [super-round], those that are left.
using ReplicateRounds = std::vector<std::vector<RoundWindows>>;

std::vector<RoundWindows> collect(const Plan& plan, const std::vector<Window>& windows) {
    const int replicates = std::max(plan.replicates, 0);
    const int super_rounds = std::max(plan.super_rounds, 0);
    std::vector<RoundWindows> rounds(static_cast<std::size_t>(replicates) * static_cast<std::size_t>(super_rounds) * rounds_per_super_round,
                                     RoundWindows{});
    for (const Window& window : windows) {
        const bool planned = window.replicate >= 0 && window.replicate < replicates && window.super_round >= 0 &&
                             window.super_round < super_rounds && window.round >= 0 && window.round < rounds_per_super_round;
        if (!planned) throw std::invalid_argument("a window lies outside the plan");
        const auto index =
            static_cast<std::size_t>((window.replicate * super_rounds + window.super_round) * rounds_per_super_round + window.round);
        const Window*& place = rounds[index].at(index_of(window.arm));
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

// The replicates in which every planned round is complete, without their flagged rounds; those with none left are dropped.
std::vector<ReplicateRounds> complete_replicates(const Plan& plan, const std::vector<RoundWindows>& rounds,
                                                 const std::set<RoundKey>& flagged) {
    std::vector<ReplicateRounds> result;
    const std::ptrdiff_t per_replicate = static_cast<std::ptrdiff_t>(std::max(plan.super_rounds, 0)) * rounds_per_super_round;
    for (int replicate = 0; replicate < plan.replicates; ++replicate) {
        const auto first = rounds.begin() + per_replicate * replicate;
        if (per_replicate == 0 || !std::all_of(first, first + per_replicate, is_complete)) continue;
        ReplicateRounds kept;
        for (int super_round = 0; super_round < plan.super_rounds; ++super_round) {
            std::vector<RoundWindows> six;
            for (int round = 0; round < rounds_per_super_round; ++round) {
                if (!flagged.empty() && flagged.contains({replicate, super_round, round})) continue;
                six.push_back(*(first + super_round * rounds_per_super_round + round));
            }
            if (!six.empty()) kept.push_back(std::move(six));
        }
        if (!kept.empty()) result.push_back(std::move(kept));
    }
    return result;
}

// The replicate's robust contrast, base against `other`.
double robust_contrast(const ReplicateRounds& rounds, ArmRole other) {
    std::vector<double> means;
    means.reserve(rounds.size());
    for (const std::vector<RoundWindows>& super_round : rounds) {
        double sum = 0.0;
        for (const RoundWindows& round : super_round) {
            sum += std::log(round[index_of(ArmRole::base)]->ms_per_token() / round[index_of(other)]->ms_per_token());
        }
        means.push_back(sum / static_cast<double>(super_round.size()));
    }
    return hodges_lehmann(means);
}

// Window and token times of one arm, of a replicate or of several.
struct Times {
    std::vector<double> window_ms;
    std::vector<double> token_ns;

    void add(const ReplicateRounds& rounds, ArmRole arm) {
        for (const std::vector<RoundWindows>& super_round : rounds) {
            for (const RoundWindows& round : super_round) {
                const Window& window = *round[index_of(arm)];
                window_ms.push_back(window.ms_per_token());
                for (const std::int64_t ns : window.token_ns) token_ns.push_back(static_cast<double>(ns));
            }
        }
    }
};

// The candidate's contrasts by two measures that a robust one is blind to: rare slow tokens.
struct TailContrasts {
    std::vector<double> of_means;
    std::vector<double> of_p99;
};

TailContrasts tail_contrasts(const std::vector<ReplicateRounds>& replicates) {
    TailContrasts result;
    for (const ReplicateRounds& rounds : replicates) {
        Times base;
        Times candidate;
        base.add(rounds, ArmRole::base);
        candidate.add(rounds, ArmRole::candidate);
        const double base_p99 = quantile(base.token_ns, 0.99);
        const double candidate_p99 = quantile(candidate.token_ns, 0.99);
        result.of_means.push_back(std::log(mean(base.window_ms)) - std::log(mean(candidate.window_ms)));
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

ArmSummary summarise(const std::vector<ReplicateRounds>& replicates, ArmRole arm) {
    Times times;
    for (const ReplicateRounds& rounds : replicates) times.add(rounds, arm);
    ArmSummary summary;
    summary.arm = arm;
    summary.windows = static_cast<int>(times.window_ms.size());
    if (times.window_ms.empty()) return summary;
    summary.mean_ms = mean(times.window_ms);
    summary.median_ms = median(times.window_ms);
    const auto [low, high] = std::minmax_element(times.window_ms.begin(), times.window_ms.end());
    summary.min_ms = *low;
    summary.max_ms = *high;
    summary.spread_percent = spread_percent(times.window_ms);
    summary.p99_token_ms = quantile(times.token_ns, 0.99) / 1e6;
    summary.tokens_per_second = 1000.0 / summary.mean_ms;
    return summary;
}

}  // namespace

Estimate estimate(const Plan& plan, const std::vector<Window>& windows, const std::set<RoundKey>& flagged) {
    const std::vector<ReplicateRounds> replicates = complete_replicates(plan, collect(plan, windows), flagged);
    Estimate result;
    for (const ReplicateRounds& rounds : replicates) {
        result.replicate_d.push_back(robust_contrast(rounds, ArmRole::candidate));
        result.replicate_control_d.push_back(robust_contrast(rounds, ArmRole::control));
    }
    result.candidate = t_interval(result.replicate_d, confidence_at(plan, static_cast<int>(replicates.size())));
    result.control = t_interval(result.replicate_control_d, plan.control_confidence);
    const TailContrasts tail = tail_contrasts(replicates);
    result.mean_based = t_interval(tail.of_means, plan.confidence);
    result.p99_based = t_interval(tail.of_p99, plan.confidence);
    result.mean_minus_robust = difference_interval(tail.of_means, result.replicate_d, plan.confidence);
    result.p99_minus_robust = difference_interval(tail.of_p99, result.replicate_d, plan.confidence);
    for (const ArmRole arm : {ArmRole::base, ArmRole::control, ArmRole::candidate})
        result.arms.at(index_of(arm)) = summarise(replicates, arm);
    if (replicates.empty()) return result;
    const ArmSummary& base = result.arms[index_of(ArmRole::base)];
    const ArmSummary& candidate = result.arms[index_of(ArmRole::candidate)];
    result.mean_ratio = base.mean_ms / candidate.mean_ms;
    result.p99_ratio = candidate.p99_token_ms > 0.0 ? base.p99_token_ms / candidate.p99_token_ms : 1.0;
    result.saved_ms_per_token = base.mean_ms - candidate.mean_ms;
    return result;
}

}  // namespace kestrel
