#include "runner/stats/guards.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "runner/record/names.hpp"
#include "runner/stats/interval.hpp"
#include "runner/stats/published.hpp"
#include "runner/stats/summary.hpp"

namespace kestrel {
namespace {

constexpr std::size_t windows_per_super_round = 18;

// One replicate's windows in the order of measurement; times as logarithms.
struct Sequence {
    std::vector<double> log_ms;
    std::vector<ArmRole> arms;
};

std::string percent(double d) {
    return rounded_like("0.000", std::expm1(d) * 100.0) + " %";
}

std::vector<Sequence> complete_sequences(const Plan& plan, const std::vector<Window>& windows) {
    const std::size_t length = static_cast<std::size_t>(std::max(plan.super_rounds, 0)) * windows_per_super_round;
    std::vector<Sequence> sequences(static_cast<std::size_t>(std::max(plan.replicates, 0)));
    std::vector<std::size_t> seen(sequences.size(), 0);
    for (const Window& window : windows) {
        const auto replicate = static_cast<std::size_t>(window.replicate);
        const auto place = static_cast<std::size_t>((window.super_round * 6 + window.round) * 3 + window.slot);
        if (window.replicate < 0 || replicate >= sequences.size() || place >= length || !(window.ms_per_token() > 0.0)) continue;
        Sequence& sequence = sequences[replicate];
        sequence.log_ms.resize(length);
        sequence.arms.resize(length);
        sequence.log_ms[place] = std::log(window.ms_per_token());
        sequence.arms[place] = window.arm;
        ++seen[replicate];
    }
    std::vector<Sequence> complete;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        if (length > 0 && seen[i] == length) complete.push_back(std::move(sequences[i]));
    }
    return complete;
}

// The means of `values` by group, 0 where a group is empty.
std::array<double, 3> group_means(std::span<const double> values, std::span<const std::size_t> groups) {
    std::array<double, 3> sum{};
    std::array<int, 3> count{};
    for (std::size_t i = 0; i < values.size(); ++i) {
        sum.at(groups[i]) += values[i];
        ++count.at(groups[i]);
    }
    for (std::size_t g = 0; g < sum.size(); ++g) sum.at(g) = count.at(g) > 0 ? sum.at(g) / count.at(g) : 0.0;
    return sum;
}

double slope(std::span<const double> values) {
    const double centre = static_cast<double>(values.size() - 1) / 2.0;
    double products = 0.0;
    double squares = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double x = static_cast<double>(i) - centre;
        products += x * values[i];
        squares += x * x;
    }
    return squares > 0.0 ? products / squares : 0.0;
}

// What the guards look at, a number for each replicate.
struct Effects {
    std::vector<double> drift;             // log per replicate, first to last window
    std::vector<double> difference_drift;  // log per replicate, first to last super-round
    std::vector<double> autocorrelation;   // minus what independent values would have
    std::array<std::vector<double>, 3> slot;
    std::array<std::vector<double>, 3> previous;  // by ArmRole
};

// Values less their own super-round's mean of their arm: neither the arms nor slow changes are left.
std::vector<double> residuals(const Sequence& sequence) {
    std::vector<double> left = sequence.log_ms;
    for (std::size_t start = 0; start < left.size(); start += windows_per_super_round) {
        std::vector<std::size_t> arms;
        for (std::size_t i = 0; i < windows_per_super_round; ++i) arms.push_back(index_of(sequence.arms[start + i]));
        const std::array<double, 3> means = group_means(std::span(left).subspan(start, windows_per_super_round), arms);
        for (std::size_t i = 0; i < windows_per_super_round; ++i) left[start + i] -= means.at(arms[i]);
    }
    return left;
}

void add_drift(const Sequence& sequence, Effects& effects) {
    std::vector<std::size_t> arms;
    for (const ArmRole arm : sequence.arms) arms.push_back(index_of(arm));
    const std::array<double, 3> means = group_means(sequence.log_ms, arms);
    std::vector<double> left = sequence.log_ms;
    for (std::size_t i = 0; i < left.size(); ++i) left[i] -= means.at(arms[i]);
    effects.drift.push_back(slope(left) * static_cast<double>(left.size() - 1));
}

void add_contrast_effects(const Sequence& sequence, Effects& effects) {
    std::vector<double> contrasts;
    for (std::size_t start = 0; start < sequence.log_ms.size(); start += windows_per_super_round) {
        double sum = 0.0;
        for (std::size_t i = start; i < start + windows_per_super_round; ++i) {
            if (sequence.arms[i] == ArmRole::base) sum += sequence.log_ms[i];
            if (sequence.arms[i] == ArmRole::candidate) sum -= sequence.log_ms[i];
        }
        contrasts.push_back(sum / 6.0);
    }
    if (contrasts.size() < 2) return;
    effects.difference_drift.push_back(slope(contrasts) * static_cast<double>(contrasts.size() - 1));
    if (contrasts.size() < 3) return;
    const double centre = mean(contrasts);
    double squares = 0.0;
    double products = 0.0;
    for (std::size_t i = 0; i < contrasts.size(); ++i) {
        squares += (contrasts[i] - centre) * (contrasts[i] - centre);
        if (i > 0) products += (contrasts[i] - centre) * (contrasts[i - 1] - centre);
    }
    // Exchangeable values, centred: the expected product of two of them is -squares / (n (n - 1)), and there are n - 1 neighbours.
    if (squares > 0.0) effects.autocorrelation.push_back(products / squares + 1.0 / static_cast<double>(contrasts.size()));
}

void add_place_effects(const Sequence& sequence, Effects& effects) {
    const std::vector<double> left = residuals(sequence);
    std::vector<std::size_t> slots;
    std::vector<std::size_t> before;
    for (std::size_t i = 0; i < left.size(); ++i) {
        // The untimed window before a super-round is one of its own last arm.
        const std::size_t previous = i % windows_per_super_round == 0 ? i + windows_per_super_round - 1 : i - 1;
        slots.push_back(i % 3);
        before.push_back(index_of(sequence.arms[previous]));
    }
    const std::array<double, 3> by_slot = group_means(left, slots);
    const std::array<double, 3> by_previous = group_means(left, before);
    for (std::size_t i = 0; i < 3; ++i) {
        effects.slot.at(i).push_back(by_slot.at(i));
        effects.previous.at(i).push_back(by_previous.at(i));
    }
}

// Whether the mean of independent values differs from 0, at a two-sided false-alarm rate. Where they do not scatter at all nothing
// was tested: computed times always scatter.
bool differs_from_zero(std::span<const double> values, double rate) {
    if (values.size() < 3) return false;
    const double sd = standard_deviation(values);
    if (!(sd > 1e-12)) return false;
    const double t = std::abs(mean(values)) / sd * std::sqrt(static_cast<double>(values.size()));
    return t > t_critical(1.0 - rate, static_cast<int>(values.size()) - 1);
}

void check_groups(const std::array<std::vector<double>, 3>& groups, const char* code, const std::array<std::string, 3>& names,
                  std::vector<Finding>& findings) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
        if (!differs_from_zero(groups.at(i), guard_rate / 3.0)) continue;
        findings.push_back({code, "windows " + names.at(i) + " take " + percent(mean(groups.at(i))) + " more than the average window",
                            "the schedule gives every arm its equal share, so the ratio stands"});
    }
}

// split_share of so many independent normal values exceeds `share` with probability guard_rate. From 1,000,000 draws each by
// `kestrel_simulate --critical-values --sessions 1000000`; between two rows the upper one is used, which only makes the guard milder.
struct SplitLimit {
    std::size_t values;
    double share;
};
constexpr std::array<SplitLimit, 9> split_limits{
    {{6, 0.9897}, {12, 0.9273}, {18, 0.8817}, {24, 0.8523}, {30, 0.8302}, {36, 0.8147}, {48, 0.7903}, {60, 0.7748}, {120, 0.7344}}};

double split_limit(std::size_t values) {
    double limit = split_limits.front().share;
    for (const SplitLimit& row : split_limits) {
        if (row.values <= values) limit = row.share;
    }
    return limit;
}

// Grubbs' two-sided critical value for the largest deviation over the standard deviation.
double grubbs_limit(std::size_t values) {
    const double n = static_cast<double>(values);
    const double t = t_critical(1.0 - guard_rate / n, static_cast<int>(values) - 2);
    return (n - 1.0) / std::sqrt(n) * std::sqrt(t * t / (n - 2.0 + t * t));
}

bool has_trend(std::span<const double> values) {
    const double n = static_cast<double>(values.size());
    const double b = slope(values);
    const double squares_x = n * (n * n - 1.0) / 12.0;
    const double sd = standard_deviation(values);
    const double left = (n - 1.0) * sd * sd - b * b * squares_x;
    if (!(left > 0.0)) return false;
    const double t = std::abs(b) / std::sqrt(left / (n - 2.0) / squares_x);
    return t > t_critical(1.0 - guard_rate, static_cast<int>(values.size()) - 2);
}

}  // namespace

double split_share(std::span<const double> values) {
    if (values.size() < 4) return 0.0;
    std::vector<double> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end());
    const double n = static_cast<double>(sorted.size());
    const double centre = mean(sorted);
    double total = 0.0;
    for (double& value : sorted) {
        value -= centre;
        total += value * value;
    }
    if (!(total > 0.0)) return 0.0;
    double below = 0.0;
    double best = 0.0;
    for (std::size_t i = 1; i + 2 <= sorted.size(); ++i) {
        below += sorted[i - 1];
        if (i < 2) continue;
        const double count = static_cast<double>(i);
        best = std::max(best, below * below * n / (count * (n - count)));  // the sum above is -below
    }
    return best / total;
}

std::vector<Finding> check_contrasts(std::span<const double> contrasts, const char* what) {
    std::vector<Finding> findings;
    if (contrasts.size() < 6) return findings;
    const std::string name(what);
    const double sd = standard_deviation(contrasts);
    if (!(sd > 1e-12)) return findings;
    const double centre = mean(contrasts);
    const auto farthest = std::max_element(contrasts.begin(), contrasts.end(),
                                           [centre](double a, double b) { return std::abs(a - centre) < std::abs(b - centre); });
    if (std::abs(*farthest - centre) > grubbs_limit(contrasts.size()) * sd) {
        findings.push_back({"OUTLIER",
                            "replicate " + std::to_string(farthest - contrasts.begin()) + " of the " + name + " lies at " +
                                percent(*farthest) + ", the others near " + percent(median(contrasts)),
                            "a rare slow placement or a disturbance: look at that replicate, then run again with more replicates"});
    } else if (split_share(contrasts) > split_limit(contrasts.size())) {
        findings.push_back({"MODES", "the replicates of the " + name + " fall into two groups",
                            "their mean depends on how often each occurs: fix the placement that causes it, or run more replicates"});
    }
    if (has_trend(contrasts)) {
        findings.push_back({"TREND", "the contrast of the " + name + " changes from replicate to replicate in one direction",
                            "let the machine reach its steady temperature and run again"});
    }
    return findings;
}

std::vector<Finding> check_order_effects(const Plan& plan, const std::vector<Window>& windows) {
    Effects effects;
    for (const Sequence& sequence : complete_sequences(plan, windows)) {
        add_drift(sequence, effects);
        add_contrast_effects(sequence, effects);
        add_place_effects(sequence, effects);
    }
    std::vector<Finding> findings;
    if (differs_from_zero(effects.drift, guard_rate)) {
        findings.push_back({"DRIFT", "times change by " + percent(mean(effects.drift)) + " from the start of a replicate to its end",
                            "the schedule cancels it; a longer warm-up would avoid it"});
    }
    if (differs_from_zero(effects.difference_drift, guard_rate)) {
        findings.push_back(
            {"DRIFT_DIFFERENCE",
             "base / candidate changes by " + percent(mean(effects.difference_drift)) + " from a replicate's start to its end",
             "the ratio is an average over that; compare a longer warm-up"});
    }
    if (differs_from_zero(effects.autocorrelation, guard_rate)) {
        findings.push_back({"AUTOCORRELATION", "neighbouring super-rounds are not independent",
                            "the interval does not count on it, because a replicate is one value"});
    }
    check_groups(effects.slot, "SLOT", {"in the first slot", "in the second slot", "in the third slot"}, findings);
    check_groups(effects.previous, "PREVIOUS_ARM", {"after base", "after control", "after candidate"}, findings);
    return findings;
}

GuardFindings check_times(const Plan& plan, const std::vector<Window>& windows, const Estimate& estimate) {
    GuardFindings findings;
    findings.doubts = check_contrasts(estimate.replicate_d, "candidate");
    for (Finding& doubt : check_contrasts(estimate.replicate_control_d, "control")) findings.doubts.push_back(std::move(doubt));
    findings.warnings = check_order_effects(plan, windows);
    return findings;
}

}  // namespace kestrel
