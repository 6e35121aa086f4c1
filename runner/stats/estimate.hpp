// From timed windows to the estimate of a session.
#pragma once

#include <array>
#include <set>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

using RoundKey = std::array<int, 3>;  // replicate, super-round, round

// Round: ln(base ms/token) - ln(other ms/token). Super-round: the mean of its rounds. Replicate: Hodges-Lehmann over its
// super-rounds. Session: mean over replicates with a t interval of K - 1 degrees of freedom, at the plan's confidence for the
// candidate (at a look: that look's) and plan.control_confidence for the control. Beside it, in each replicate: the ratio of mean
// window times and the ratio of the 99th percentiles of all token times, minus the robust contrast, with intervals at
// plan.confidence.
//
// Only complete replicates count, for every field: those with all planned rounds, each with a timed window of all three arms
// and equally many tokens. Interval.replicates is their number; below two there is no interval (interval.hpp).
// Rounds in `flagged` are left out of replicates that are complete with them: the sensitivity of the result to those rounds.
// A replicate of which nothing remains does not count.
// Throws std::invalid_argument if a window lies outside the plan or occurs twice.
[[nodiscard]] Estimate estimate(const Plan& plan, const std::vector<Window>& windows, const std::set<RoundKey>& flagged = {});

}  // namespace kestrel
