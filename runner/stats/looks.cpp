#include "runner/stats/looks.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <stdexcept>
#include <string>

namespace kestrel {
namespace {

// Nominal p-values below this are raised to it: it adds nothing to the error rate, and 1 - p stays a double that differs from 1.
constexpr double least_p = 1e-9;

double density(double x) {
    return std::exp(-x * x / 2.0) / std::sqrt(2.0 * std::numbers::pi);
}

// The probability that a standard normal walk stays within +-barrier for so many steps. Simpson's rule on a grid of at most 0.1:
// its error, h^4 / 180 of a fourth derivative of order 1, stays below 1e-6.
double probability_inside(double barrier, int steps) {
    const auto intervals = static_cast<std::size_t>(2.0 * std::ceil(barrier / 0.1));  // even, as Simpson's rule needs
    const double h = 2.0 * barrier / static_cast<double>(intervals);
    std::vector<double> weight(intervals + 1, 2.0 * h / 3.0);
    std::vector<double> kernel(intervals + 1);
    std::vector<double> now(intervals + 1);
    for (std::size_t i = 0; i <= intervals; ++i) {
        if (i % 2 == 1) weight[i] = 4.0 * h / 3.0;
        kernel[i] = density(h * static_cast<double>(i));
        now[i] = density(h * static_cast<double>(i) - barrier);
    }
    weight.front() = weight.back() = h / 3.0;
    std::vector<double> next(intervals + 1);
    for (int step = 1; step < steps; ++step) {
        for (std::size_t i = 0; i <= intervals; ++i) {
            double sum = 0.0;
            for (std::size_t j = 0; j <= intervals; ++j) sum += weight[j] * now[j] * kernel[i > j ? i - j : j - i];
            next[i] = sum;
        }
        now.swap(next);
    }
    double inside = 0.0;
    for (std::size_t i = 0; i <= intervals; ++i) inside += weight[i] * now[i];
    return inside;
}

}  // namespace

double obrien_fleming_constant(int looks, double alpha) {
    if (looks < 1 || looks > 100) throw std::invalid_argument("looks must be 1 to 100, not " + std::to_string(looks));
    if (!(alpha >= 0.0001 && alpha <= 0.5)) throw std::invalid_argument("the error rate of the looks must be 0.0001 to 0.5");
    const boost::math::normal_distribution<double> normal;
    const double fixed = boost::math::quantile(boost::math::complement(normal, alpha / 2.0));
    if (looks == 1) return fixed;
    const double root = std::sqrt(static_cast<double>(looks));
    const auto excess = [&](double c) { return 1.0 - probability_inside(c * root, looks) - alpha; };
    // More looks only add chances to cross, and by the reflection principle never more than double them.
    const double high = boost::math::quantile(boost::math::complement(normal, alpha / 8.0)) + 0.1;
    std::uintmax_t iterations = 60;
    const auto [low, above] =
        boost::math::tools::toms748_solve(excess, fixed - 1e-3, high, boost::math::tools::eps_tolerance<double>(30), iterations);
    return (low + above) / 2.0;
}

std::vector<Look> obrien_fleming_looks(int replicates, double alpha) {
    if (replicates < 1) throw std::invalid_argument("a plan has at least one replicate");
    if (replicates % replicates_per_look != 0) return {{replicates, 1.0 - alpha}};
    const int count = replicates / replicates_per_look;
    const double constant = obrien_fleming_constant(count, alpha);
    const boost::math::normal_distribution<double> normal;
    std::vector<Look> looks;
    for (int k = 1; k <= count; ++k) {
        const double boundary = constant * std::sqrt(static_cast<double>(count) / static_cast<double>(k));
        const double p = 2.0 * boost::math::cdf(boost::math::complement(normal, boundary));
        looks.push_back({k * replicates_per_look, count == 1 ? 1.0 - alpha : 1.0 - std::max(p, least_p)});
    }
    return looks;
}

double confidence_at(const Plan& plan, int replicates) {
    if (plan.looks.empty()) return plan.confidence;
    double confidence = plan.looks.front().confidence;
    for (const Look& look : plan.looks) {
        if (look.replicates <= replicates) confidence = look.confidence;
    }
    return confidence;
}

bool is_look(const Plan& plan, int replicates) {
    if (plan.looks.empty()) return replicates > 0 && replicates >= plan.replicates;
    return std::any_of(plan.looks.begin(), plan.looks.end(), [replicates](const Look& look) { return look.replicates == replicates; });
}

}  // namespace kestrel
