// Location, spread and quantiles. None of these functions changes its input; all throw std::invalid_argument on an empty one.
#pragma once

#include <span>
#include <vector>

namespace kestrel {

[[nodiscard]] double mean(std::span<const double> values);

// Sample standard deviation, n - 1 in the denominator, in two passes; 0 for a single value.
[[nodiscard]] double standard_deviation(std::span<const double> values);

// The q-quantile, 0 <= q <= 1, by linear interpolation between order statistics (R's type 7).
[[nodiscard]] double quantile(std::span<const double> values, double q);

[[nodiscard]] double median(std::span<const double> values);

// (max - min) / min in percent. Values must be positive.
[[nodiscard]] double spread_percent(std::span<const double> values);

// The median of the means of all pairs, each value with itself included (Hodges and Lehmann, 1963): nearly as precise as the
// mean for normal noise, and one wild value cannot move it far. O(n^2) memory.
[[nodiscard]] double hodges_lehmann(std::span<const double> values);

// What a table of two arms' rounds says, the way published tables state it. Times in ms/token.
struct TwoArmSummary {
    double base_mean = 0.0;
    double other_mean = 0.0;
    double ratio = 0.0;          // of the means, base / other
    double saved_ms = 0.0;       // base mean - other mean
    double saved_percent = 0.0;  // of the base mean
    double base_spread_percent = 0.0;
    double other_spread_percent = 0.0;
    std::vector<double> round_ratios;  // base / other, per round
};

// `base` and `other` hold the two arms' times of the same rounds, in the same order.
[[nodiscard]] TwoArmSummary two_arm_summary(std::span<const double> base, std::span<const double> other);

}  // namespace kestrel
