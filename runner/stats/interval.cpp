#include "runner/stats/interval.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "runner/stats/summary.hpp"

namespace kestrel {

double t_critical(double confidence, int degrees) {
    const boost::math::students_t_distribution<double> distribution(static_cast<double>(degrees));
    return boost::math::quantile(boost::math::complement(distribution, (1.0 - confidence) / 2.0));
}

Interval t_interval(std::span<const double> values, double confidence) {
    Interval interval;
    interval.confidence = confidence;
    interval.replicates = static_cast<int>(values.size());
    if (values.empty()) return interval;
    interval.d = interval.lo = interval.hi = mean(values);
    interval.sd = standard_deviation(values);
    if (!has_interval(interval)) return interval;
    const double n = static_cast<double>(values.size());
    const double half_width = t_critical(confidence, interval.replicates - 1) * interval.sd / std::sqrt(n);
    interval.lo = interval.d - half_width;
    interval.hi = interval.d + half_width;
    return interval;
}

std::optional<int> replicates_for(double half_width, double sd, double confidence) {
    constexpr int most = 3000;  // beyond that the answer is "never", whatever the digits say
    if (!(half_width > 0.0)) return std::nullopt;
    for (int n = 6; n <= most; n += 6) {
        if (t_critical(confidence, n - 1) * sd / std::sqrt(static_cast<double>(n)) < half_width) return n;
    }
    return std::nullopt;
}

}  // namespace kestrel
