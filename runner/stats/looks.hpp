// Group-sequential looks: when a session may end before its last planned replicate, and how wide its interval then is.
//
// Whoever looks at a growing session after every few replicates and stops at the first p < 0.05 finds differences between
// identical builds far too often. O'Brien and Fleming (1979) spread the error rate over looks planned beforehand: after k of L
// equally spaced looks the statistic must exceed c sqrt(L / k). The intervals at these confidences ("repeated confidence
// intervals", Jennison and Turnbull 2000, chapter 9) hold at all looks together, for whatever reason the session stops.
//
// The boundary is one for normal statistics. With few replicates the scatter is estimated too, so each look's boundary is turned
// into its nominal two-sided p-value, and that into a t quantile with K - 1 degrees of freedom (same book, section 3.8).
#pragma once

#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

inline constexpr int replicates_per_look = 6;  // each load order of three arms occurs once in six

// The constant c above: a standard normal random walk of `looks` steps leaves +-c sqrt(looks) with probability `alpha`. Found by
// numerical integration (Armitage, McPherson, Rowe 1969) to about 1e-6. looks 1 to 100, 0.0001 <= alpha <= 0.5, else
// std::invalid_argument.
[[nodiscard]] double obrien_fleming_constant(int looks, double alpha);

// Looks after every six replicates up to `replicates`, with an error rate of `alpha` over all of them. A number that is not a
// multiple of six gets one look, at its end. Throws std::invalid_argument as above, or if `replicates` is not positive.
[[nodiscard]] std::vector<Look> obrien_fleming_looks(int replicates, double alpha);

// The confidence of the candidate's interval after `replicates` complete replicates: that of the look there; between looks
// that of the look before, before the first look that of the first; plan.confidence if the plan has no looks.
[[nodiscard]] double confidence_at(const Plan& plan, int replicates);

// True if a session with so many complete replicates has reached one of its planned looks.
[[nodiscard]] bool is_look(const Plan& plan, int replicates);

}  // namespace kestrel
