// Student's t interval of a mean.
#pragma once

#include <optional>
#include <span>

#include "runner/record/record.hpp"

namespace kestrel {

// The two-sided critical value: P(|t| <= value) = confidence, with `degrees` >= 1 degrees of freedom, 0 < confidence < 1.
[[nodiscard]] double t_critical(double confidence, int degrees);

// Mean and interval of independent values. Below two values there is no interval: lo = hi = d, and `replicates` says so
// (has_interval).
[[nodiscard]] Interval t_interval(std::span<const double> values, double confidence);

[[nodiscard]] inline bool has_interval(const Interval& interval) {
    return interval.replicates >= 2;
}

// The smallest number of values, a multiple of six, whose t interval is expected to be narrower than +-half_width if the values
// keep the standard deviation `sd`; nothing if that takes more than 3000 or half_width is not positive.
[[nodiscard]] std::optional<int> replicates_for(double half_width, double sd, double confidence);

}  // namespace kestrel
