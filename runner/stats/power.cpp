#include "runner/stats/power.hpp"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <stdexcept>

#include "runner/stats/interval.hpp"

namespace kestrel {
namespace {

constexpr int variance_points = 256;

double normal_below(double x) {
    return boost::math::cdf(boost::math::normal_distribution<double>(), x);
}

// The mean of probability(half width of the interval, standard error of d) over the distribution of the estimated variance.
template <typename Probability>
double average_over_variance(const Prospect& prospect, Probability probability) {
    if (prospect.replicates < 2) throw std::invalid_argument("an interval needs at least two replicates");
    const double degrees = static_cast<double>(prospect.replicates - 1);
    const boost::math::chi_squared_distribution<double> chi(degrees);
    const double error = std::max(prospect.sd, 1e-12) / std::sqrt(static_cast<double>(prospect.replicates));
    const double t = t_critical(prospect.confidence, prospect.replicates - 1);
    double sum = 0.0;
    for (int i = 0; i < variance_points; ++i) {
        const double share = (static_cast<double>(i) + 0.5) / variance_points;
        sum += probability(t * error * std::sqrt(boost::math::quantile(chi, share) / degrees), error);
    }
    return sum / variance_points;
}

}  // namespace

double probability_inside_margin(const Prospect& prospect) {
    return average_over_variance(prospect, [&prospect](double half_width, double error) {
        const double room = prospect.delta - half_width;
        if (room <= 0.0) return 0.0;
        return normal_below((room - prospect.effect) / error) - normal_below((-room - prospect.effect) / error);
    });
}

double probability_above_zero(const Prospect& prospect) {
    return average_over_variance(
        prospect, [&prospect](double half_width, double error) { return normal_below((prospect.effect - half_width) / error); });
}

}  // namespace kestrel
