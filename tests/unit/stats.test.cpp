#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "runner/plan/plan.hpp"
#include "runner/plan/random.hpp"
#include "runner/record/names.hpp"
#include "runner/stats/estimate.hpp"
#include "runner/stats/interval.hpp"
#include "runner/stats/summary.hpp"

using namespace kestrel;

namespace {

using Values = std::vector<double>;

// Windows of a whole plan; `ns_of(window)` is the time of each of its tokens.
template <typename Time>
std::vector<Window> windows_of(const Plan& plan, Time ns_of) {
    std::vector<Window> windows;
    for (int replicate = 0; replicate < plan.replicates; ++replicate) {
        for (int super_round = 0; super_round < plan.super_rounds; ++super_round) {
            for (int i = 0; i < 18; ++i) {
                Window window;
                window.replicate = replicate;
                window.super_round = super_round;
                window.round = i / 3;
                window.slot = i % 3;
                window.arm =
                    plan.schedules[static_cast<std::size_t>(replicate)][static_cast<std::size_t>(super_round)][static_cast<std::size_t>(i)];
                const std::int64_t ns = std::llround(ns_of(window));
                window.token_ns.assign(static_cast<std::size_t>(plan.tokens), ns);
                window.window_ns = ns * plan.tokens;
                windows.push_back(window);
            }
        }
    }
    return windows;
}

Plan plan_with(int replicates, int super_rounds = 3) {
    PlanRequest request;
    request.seed = 17;
    request.replicates = replicates;
    request.super_rounds = super_rounds;
    request.tokens = 8;
    return make_plan(request);
}

double arm_ns(ArmRole arm) {
    return std::array<double, 3>{12e6, 12e6, 10e6}.at(index_of(arm));
}

}  // namespace

TEST_CASE("summary: location, spread and quantiles of known values") {
    CHECK(mean(Values{1, 2, 6}) == Approx(3.0));
    CHECK(standard_deviation(Values{2, 4, 4, 4, 5, 5, 7, 9}) == Approx(std::sqrt(32.0 / 7.0)));
    CHECK(standard_deviation(Values{5}) == 0.0);
    CHECK(standard_deviation(Values{1e9 + 1, 1e9 + 2, 1e9 + 3}) == Approx(1.0));
    CHECK(median(Values{9, 1, 5}) == 5.0);
    CHECK(median(Values{4, 1, 3, 2}) == 2.5);
    CHECK(quantile(Values{10, 20, 30, 40, 50}, 0.0) == 10.0);
    CHECK(quantile(Values{10, 20, 30, 40, 50}, 1.0) == 50.0);
    CHECK(quantile(Values{50, 40, 30, 20, 10}, 0.99) == Approx(49.6));
    CHECK(spread_percent(Values{100, 103, 101}) == Approx(3.0));
}

TEST_CASE("summary: no values, and values that make no sense, are refused") {
    CHECK_THROWS_AS(mean(Values{}), std::invalid_argument);
    CHECK_THROWS_AS(standard_deviation(Values{}), std::invalid_argument);
    CHECK_THROWS_AS(median(Values{}), std::invalid_argument);
    CHECK_THROWS_AS(hodges_lehmann(Values{}), std::invalid_argument);
    CHECK_THROWS_AS(spread_percent(Values{}), std::invalid_argument);
    CHECK_THROWS_AS(spread_percent(Values{0, 1}), std::invalid_argument);
    CHECK_THROWS_AS(quantile(Values{1}, 1.5), std::invalid_argument);
    CHECK_THROWS_AS(two_arm_summary(Values{1, 2}, Values{1}), std::invalid_argument);
}

TEST_CASE("hodges_lehmann: the median of pairwise means, and robust") {
    CHECK(hodges_lehmann(Values{4}) == 4.0);
    CHECK(hodges_lehmann(Values{1, 3}) == 2.0);
    CHECK(hodges_lehmann(Values{1, 2, 10}) == 3.75);  // 1 1.5 2 5.5 6 10
    CHECK(hodges_lehmann(Values{1, 2, 3, 4, 1000}) < 5.0);
    CHECK(hodges_lehmann(Values{-1, -2, -10}) == -hodges_lehmann(Values{1, 2, 10}));
}

TEST_CASE("t_critical: tabled values") {
    CHECK(t_critical(0.95, 1) == Approx(12.7062).epsilon(1e-5));
    CHECK(t_critical(0.95, 5) == Approx(2.57058).epsilon(1e-5));
    CHECK(t_critical(0.99, 5) == Approx(4.03214).epsilon(1e-5));
    CHECK(t_critical(0.95, 1000) == Approx(1.96234).epsilon(1e-5));
}

TEST_CASE("t_interval: mean, bounds, and none below two values") {
    const Interval interval = t_interval(Values{1, 2, 3, 4, 5, 6}, 0.95);
    const double half = 2.57058 * std::sqrt(3.5) / std::sqrt(6.0);
    CHECK(interval.d == Approx(3.5));
    CHECK(interval.lo == Approx(3.5 - half).epsilon(1e-5));
    CHECK(interval.hi == Approx(3.5 + half).epsilon(1e-5));
    CHECK(interval.sd == Approx(std::sqrt(3.5)));
    CHECK(interval.replicates == 6);
    CHECK(has_interval(interval));
    const Interval one = t_interval(Values{0.25}, 0.95);
    CHECK_FALSE(has_interval(one));
    CHECK(one.replicates == 1);
    CHECK(one.lo == 0.25);
    CHECK(one.hi == 0.25);
    CHECK(t_interval(Values{}, 0.99).replicates == 0);
}

TEST_CASE("t_interval: covers the truth as often as it says") {
    // Sums of twelve uniform values are close to normal. 4000 intervals at 95 %: 200 +- 14 misses expected.
    Random random(2024);
    int misses = 0;
    for (int trial = 0; trial < 4000; ++trial) {
        Values values(6, -6.0);
        for (double& value : values) {
            for (int i = 0; i < 12; ++i) value += static_cast<double>(random.next() >> 11U) * 0x1.0p-53;
        }
        const Interval interval = t_interval(values, 0.95);
        misses += interval.lo > 0.0 || interval.hi < 0.0 ? 1 : 0;
    }
    CHECK(misses > 145);
    CHECK(misses < 255);
}

TEST_CASE("replicates_for: the least multiple of six that is narrow enough") {
    const auto half = [](int n, double sd) { return t_critical(0.95, n - 1) * sd / std::sqrt(static_cast<double>(n)); };
    for (const double target : {0.02, 0.01, 0.004, 0.002}) {
        const std::optional<int> n = replicates_for(target, 0.01, 0.95);
        REQUIRE(n.has_value());
        CHECK(*n % 6 == 0);
        CHECK(half(*n, 0.01) < target);
        if (*n > 6) CHECK(half(*n - 6, 0.01) >= target);
    }
    CHECK(replicates_for(0.001, 0.0, 0.95) == 6);
    CHECK_FALSE(replicates_for(0.0, 0.01, 0.95).has_value());
    CHECK_FALSE(replicates_for(-1.0, 0.01, 0.95).has_value());
    CHECK_FALSE(replicates_for(1e-6, 0.01, 0.95).has_value());
}

TEST_CASE("estimate: a planted difference comes out, per replicate and in all") {
    const Plan plan = plan_with(6);
    const Estimate result = estimate(plan, windows_of(plan, [](const Window& w) {
                                         return arm_ns(w.arm) * (1.0 + 0.001 * w.replicate * (w.arm == ArmRole::base ? 1 : 0));
                                     }));
    REQUIRE(result.replicate_d.size() == 6);
    Values expected;
    for (int k = 0; k < 6; ++k) expected.push_back(std::log(1.2 * (1.0 + 0.001 * k)));
    for (std::size_t k = 0; k < 6; ++k) CHECK(result.replicate_d[k] == Approx(expected[k]).epsilon(1e-6));
    CHECK(result.candidate.d == Approx(mean(expected)).epsilon(1e-6));
    CHECK(result.candidate.sd == Approx(standard_deviation(expected)).epsilon(1e-3));
    CHECK(result.candidate.confidence == 0.95);
    CHECK(result.control.confidence == 0.99);
    CHECK(result.control.d == Approx(0.0025).epsilon(0.01));
    const ArmSummary& candidate = result.arms[index_of(ArmRole::candidate)];
    CHECK(candidate.arm == ArmRole::candidate);
    CHECK(candidate.windows == 6 * 3 * 6);
    CHECK(candidate.mean_ms == Approx(10.0));
    CHECK(candidate.tokens_per_second == Approx(100.0));
    CHECK(candidate.spread_percent == Approx(0.0));
    const ArmSummary& base = result.arms[index_of(ArmRole::base)];
    CHECK(base.min_ms == Approx(12.0));
    CHECK(base.max_ms == Approx(12.06));
    CHECK(base.spread_percent == Approx(0.5));
    CHECK(result.saved_ms_per_token == Approx(2.03));
    CHECK(result.mean_ratio == Approx(1.203));
    CHECK(result.p99_ratio == Approx(1.206));
}

TEST_CASE("estimate: swapping base and candidate changes the sign of d, scaling all times changes nothing") {
    const Plan plan = plan_with(4);
    std::vector<Window> windows = windows_of(
        plan, [](const Window& w) { return arm_ns(w.arm) + 1000.0 * ((w.replicate * 7 + w.super_round * 5 + w.round * 3 + w.slot) % 11); });
    const Estimate result = estimate(plan, windows);
    std::vector<Window> scaled = windows;
    for (Window& window : scaled) window.window_ns *= 3;
    const Estimate after_scaling = estimate(plan, scaled);
    CHECK(after_scaling.candidate.d == Approx(result.candidate.d));
    CHECK(after_scaling.candidate.lo == Approx(result.candidate.lo));
    for (Window& window : windows) {
        if (window.arm != ArmRole::control) window.arm = window.arm == ArmRole::base ? ArmRole::candidate : ArmRole::base;
    }
    const Estimate swapped = estimate(plan, windows);
    CHECK(swapped.candidate.d == Approx(-result.candidate.d));
    CHECK(swapped.candidate.lo == Approx(-result.candidate.hi));
    CHECK(swapped.saved_ms_per_token == Approx(-result.saved_ms_per_token));
}

TEST_CASE("estimate: drift and carry-over, the same for all arms, cancel within a super-round") {
    const Plan plan = plan_with(6, 4);
    std::map<int, ArmRole> last;  // by replicate: the arm measured just before
    const Estimate result = estimate(plan, windows_of(plan, [&](const Window& w) {
                                         const int window_index = w.round * 3 + w.slot;
                                         const auto& sequence =
                                             plan.schedules[static_cast<std::size_t>(w.replicate)][static_cast<std::size_t>(w.super_round)];
                                         const ArmRole before = window_index == 0 ? sequence.back() : last[w.replicate];
                                         last[w.replicate] = w.arm;
                                         const double log_effect = 0.002 * window_index + (before == ArmRole::base ? 0.01 : 0.0);
                                         return 1e9 * std::exp(log_effect);
                                     }));
    CHECK(std::abs(result.candidate.d) < 1e-8);
    CHECK(std::abs(result.control.d) < 1e-8);
}

TEST_CASE("estimate: only complete replicates count") {
    const Plan plan = plan_with(3);
    const std::vector<Window> all = windows_of(plan, [](const Window& w) { return arm_ns(w.arm) * (w.replicate == 1 ? 2.0 : 1.0); });
    const auto without = [&all](auto drop) {
        std::vector<Window> kept = all;
        std::erase_if(kept, drop);
        return kept;
    };
    const auto in_replicate_1 = [](const Window& w) { return w.replicate == 1 && w.super_round == 2 && w.round == 5; };
    CHECK(estimate(plan, all).candidate.replicates == 3);

    const Estimate missing_round = estimate(plan, without(in_replicate_1));
    CHECK(missing_round.candidate.replicates == 2);
    CHECK(missing_round.control.replicates == 2);
    CHECK(missing_round.arms[0].windows == 2 * 18);
    CHECK(missing_round.arms[0].max_ms == Approx(12.0));  // nothing of replicate 1 is left

    const Estimate missing_window =
        estimate(plan, without([&](const Window& w) { return in_replicate_1(w) && w.arm == ArmRole::control; }));
    CHECK(missing_window.candidate.replicates == 2);

    std::vector<Window> empty_window = all;
    for (Window& w : empty_window) {
        if (in_replicate_1(w) && w.arm == ArmRole::base) w.token_ns.clear();
    }
    CHECK(estimate(plan, empty_window).candidate.replicates == 2);

    const Estimate one = estimate(plan, without([](const Window& w) { return w.replicate > 0; }));
    CHECK(one.candidate.replicates == 1);
    CHECK_FALSE(has_interval(one.candidate));
    CHECK(one.candidate.d == Approx(std::log(1.2)));

    const Estimate none = estimate(plan, {});
    CHECK(none.candidate.replicates == 0);
    CHECK(none.arms[2].windows == 0);
    CHECK(none.mean_ratio == 1.0);
}

TEST_CASE("estimate: flagged rounds are left out without costing the replicate") {
    const Plan plan = plan_with(2, 1);
    const std::vector<Window> windows = windows_of(plan, [](const Window& w) {
        const bool throttled = w.replicate == 0 && w.round == 3 && w.arm == ArmRole::candidate;
        return arm_ns(w.arm) * (throttled ? 1.5 : 1.0);
    });
    CHECK(estimate(plan, windows).replicate_d[0] == Approx(std::log(1.2) - std::log(1.5) / 6.0).epsilon(1e-6));
    const Estimate without = estimate(plan, windows, {{0, 0, 3}});
    REQUIRE(without.replicate_d.size() == 2);
    CHECK(without.replicate_d[0] == Approx(std::log(1.2)).epsilon(1e-6));
    CHECK(without.arms[0].windows == 11);
    std::set<RoundKey> whole_replicate;
    for (int round = 0; round < 6; ++round) whole_replicate.insert({0, 0, round});
    CHECK(estimate(plan, windows, whole_replicate).candidate.replicates == 1);
}

TEST_CASE("estimate: one wild super-round moves the replicate little, the mean ratio shows it") {
    const Plan plan = plan_with(2, 7);
    const Estimate result = estimate(plan, windows_of(plan, [](const Window& w) {
                                         return arm_ns(w.arm) * (w.super_round == 4 && w.arm == ArmRole::candidate ? 3.0 : 1.0);
                                     }));
    CHECK(result.candidate.d == Approx(std::log(1.2)).epsilon(1e-6));
    CHECK(result.mean_ratio < 1.0);
    CHECK(result.p99_ratio == Approx(12.0 / 30.0));
    // Both replicates say the same, so the disagreement is certain.
    const double mean_candidate = (6.0 * 10.0 + 30.0) / 7.0;
    CHECK(result.mean_minus_robust.lo == Approx(std::log(12.0 / mean_candidate / 1.2)).epsilon(1e-6));
    CHECK(result.mean_minus_robust.hi == Approx(result.mean_minus_robust.lo));
    CHECK(result.p99_minus_robust.lo == Approx(std::log(12.0 / 30.0 / 1.2)).epsilon(1e-6));
}

TEST_CASE("estimate: a stall in one replicate leaves the tail's disagreement undecided") {
    const Plan plan = plan_with(6, 7);
    const Estimate result = estimate(plan, windows_of(plan, [](const Window& w) {
                                         const bool stalled = w.replicate == 2 && w.super_round == 4 && w.arm == ArmRole::candidate;
                                         return arm_ns(w.arm) * (stalled ? 3.0 : 1.0);
                                     }));
    CHECK(result.mean_minus_robust.d < 0.0);
    CHECK(result.mean_minus_robust.hi > 0.0);
    CHECK(result.p99_minus_robust.d < -0.1);
    CHECK(result.p99_minus_robust.hi > 0.0);
}

TEST_CASE("estimate: windows outside the plan, or twice, are refused") {
    const Plan plan = plan_with(2, 1);
    const std::vector<Window> good = windows_of(plan, [](const Window& w) { return arm_ns(w.arm); });
    std::vector<Window> twice = good;
    twice.push_back(good.front());
    CHECK_THROWS_AS(estimate(plan, twice), std::invalid_argument);
    for (const auto change : {+[](Window& w) { w.replicate = 2; }, +[](Window& w) { w.super_round = 1; }, +[](Window& w) { w.round = 6; },
                              +[](Window& w) { w.replicate = -1; }}) {
        std::vector<Window> bad = good;
        change(bad.front());
        CHECK_THROWS_AS(estimate(plan, bad), std::invalid_argument);
    }
}
