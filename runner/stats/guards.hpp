// Guards over the times: what would make the interval mean something else than it says. Pure functions of windows and estimate.
//
// Each guard is a test with a stated false-alarm rate on undisturbed sessions. The unit is the replicate: an effect is computed
// within each one and its mean tested with Student's t across them, so that correlation inside a process cannot make a guard
// cry. Effects that the schedule cancels (drift, slot, previous arm) and those that the choice of the process as unit makes harmless
// (autocorrelation) are warnings; effects on the replicates' contrasts themselves are doubts, which allow UNDECIDED at best.
#pragma once

#include <span>
#include <vector>

#include "runner/record/record.hpp"
#include "runner/stats/finding.hpp"

namespace kestrel {

inline constexpr double guard_rate = 0.001;  // of each guard, per session; the doubts together stay below 0.6 %

struct GuardFindings {
    std::vector<Finding> doubts;
    std::vector<Finding> warnings;
};

// All guards below. `estimate` is that of the same windows.
[[nodiscard]] GuardFindings check_times(const Plan& plan, const std::vector<Window>& windows, const Estimate& estimate);

// Warnings from the windows of complete replicates; at least three of them, else nothing can be tested.
//   DRIFT            times rise or fall within the replicates (slope over the windows, arms' own means removed)
//   DRIFT_DIFFERENCE the contrast of a super-round rises or falls within the replicates
//   AUTOCORRELATION  neighbouring super-rounds' contrasts resemble (or avoid) each other
//   SLOT             a slot of the round is slower or faster
//   PREVIOUS_ARM     windows after one arm are slower or faster
[[nodiscard]] std::vector<Finding> check_order_effects(const Plan& plan, const std::vector<Window>& windows);

// Doubts from the contrasts of replicates, at least six of them; `what` names them in the sentence ("candidate").
//   MODES    they fall into two groups (largest share of the scatter that a split into two groups of at least two explains)
//   OUTLIER  one lies apart (Grubbs 1969, two-sided)
//   TREND    they rise or fall in the order of measurement
[[nodiscard]] std::vector<Finding> check_contrasts(std::span<const double> contrasts, const char* what);

// The share of the scatter of `values` between the two groups of the best split of the sorted values, each group with at least two
// values; 0 if there are fewer than four values or they do not differ.
[[nodiscard]] double split_share(std::span<const double> values);

}  // namespace kestrel
