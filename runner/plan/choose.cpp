#include "runner/plan/choose.hpp"

#include <algorithm>
#include <cmath>

#include "runner/plan/boundaries.hpp"
#include "runner/plan/power.hpp"
#include "runner/record/error.hpp"

namespace kestrel {
namespace {

ChosenLength expected_of(const Policy& policy, double delta, int replicates, double sd) {
    Prospect control{0.0, sd, delta, replicates, policy.control_confidence};
    const double control_fails = 1.0 - probability_inside_margin(control);
    Prospect candidate{0.0, sd, delta, replicates, obrien_fleming_looks(replicates, policy.alpha).back().confidence};
    ChosenLength length;
    length.replicates = replicates;
    length.power_same = std::max(0.0, probability_inside_margin(candidate) - control_fails);
    candidate.effect = policy.effect_in_margins * delta;
    length.power_effect = std::max(0.0, probability_above_zero(candidate) - control_fails);
    length.is_enough = std::min(length.power_same, length.power_effect) >= policy.power;
    return length;
}

}  // namespace

ChosenLength choose_length(const Policy& policy, double margin, std::optional<double> control_sd) {
    if (!(margin > 0.0 && margin <= 0.5)) throw Error(ExitCode::usage, "The margin must be above 0 and at most 0.5 (0.01 stands for 1 %).");
    if (!control_sd) return {policy.maximum_replicates, false, 0.0, 0.0};
    if (!(std::isfinite(*control_sd) && *control_sd >= 0.0)) {
        throw Error(ExitCode::usage, "The control's standard deviation must be finite, and not negative.");
    }
    ChosenLength length;
    for (int n = replicates_per_look; n <= policy.maximum_replicates; n += replicates_per_look) {
        length = expected_of(policy, std::log1p(margin), n, *control_sd);
        if (length.is_enough) break;
    }
    return length;
}

double smallest_resolvable_effect(const Policy& policy, int replicates, double control_sd) {
    const double confidence = obrien_fleming_looks(replicates, policy.alpha).back().confidence;
    const auto power = [&](double effect) { return probability_above_zero({effect, control_sd, 0.0, replicates, confidence}); };
    double low = 0.0;
    double high = std::max(control_sd, 1e-9);
    while (power(high) < policy.power) high *= 2.0;
    while (high - low > 1e-3 * high) {
        const double middle = (low + high) / 2.0;
        (power(middle) < policy.power ? low : high) = middle;
    }
    return std::expm1(high);
}

double context_seconds(const Plan& plan, const ReplicateCost& cost) {
    return 2.0 * static_cast<double>(plan.position) * cost.ms_per_token / 1000.0;
}

ExpectedSeconds expected_seconds(const Plan& plan, const ReplicateCost& cost) {
    const double windows = 19.0 * static_cast<double>(plan.super_rounds);  // eighteen, and the one that leads in
    const double tokens = windows * static_cast<double>(plan.tokens + 1);
    const double replicate = cost.fixed_seconds + tokens * cost.ms_per_token / 1000.0;
    const int first = plan.looks.empty() ? plan.replicates : plan.looks.front().replicates;
    const double context = context_seconds(plan, cost);
    return {context + replicate * static_cast<double>(first), context + replicate * static_cast<double>(plan.replicates)};
}

}  // namespace kestrel
