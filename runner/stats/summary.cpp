#include "runner/stats/summary.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace kestrel {
namespace {

void require_values(std::span<const double> values, const char* what) {
    if (values.empty()) throw std::invalid_argument(std::string(what) + " of no values");
}

// Reorders `values`.
double quantile_of(std::vector<double>& values, double q) {
    const double rank = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(rank));
    const auto lower = values.begin() + static_cast<std::ptrdiff_t>(below);
    std::nth_element(values.begin(), lower, values.end());
    const double fraction = rank - static_cast<double>(below);
    if (fraction == 0.0) return *lower;
    const double upper = *std::min_element(lower + 1, values.end());
    return *lower + fraction * (upper - *lower);
}

}  // namespace

double mean(std::span<const double> values) {
    require_values(values, "mean");
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
    require_values(values, "standard deviation");
    if (values.size() == 1) return 0.0;
    const double centre = mean(values);
    double squares = 0.0;
    for (const double value : values) squares += (value - centre) * (value - centre);
    return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double quantile(std::span<const double> values, double q) {
    require_values(values, "quantile");
    if (!(q >= 0.0 && q <= 1.0)) throw std::invalid_argument("a quantile is between 0 and 1");
    std::vector<double> copy(values.begin(), values.end());
    return quantile_of(copy, q);
}

double median(std::span<const double> values) {
    return quantile(values, 0.5);
}

double spread_percent(std::span<const double> values) {
    require_values(values, "spread");
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    if (!(*low > 0.0)) throw std::invalid_argument("the spread of values that are not positive");
    return (*high - *low) / *low * 100.0;
}

double hodges_lehmann(std::span<const double> values) {
    require_values(values, "Hodges-Lehmann estimate");
    std::vector<double> averages;
    averages.reserve(values.size() * (values.size() + 1) / 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
        for (std::size_t j = i; j < values.size(); ++j) averages.push_back((values[i] + values[j]) / 2.0);
    }
    return quantile_of(averages, 0.5);
}

TwoArmSummary two_arm_summary(std::span<const double> base, std::span<const double> other) {
    if (base.size() != other.size()) throw std::invalid_argument("two arms with different numbers of rounds");
    TwoArmSummary summary;
    summary.base_mean = mean(base);
    summary.other_mean = mean(other);
    summary.ratio = summary.base_mean / summary.other_mean;
    summary.saved_ms = summary.base_mean - summary.other_mean;
    summary.saved_percent = summary.saved_ms / summary.base_mean * 100.0;
    summary.base_spread_percent = spread_percent(base);
    summary.other_spread_percent = spread_percent(other);
    for (std::size_t i = 0; i < base.size(); ++i) summary.round_ratios.push_back(base[i] / other[i]);
    return summary;
}

}  // namespace kestrel
