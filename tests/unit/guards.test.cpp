#include "runner/stats/guards.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "runner/stats/assess.hpp"
#include "runner/stats/estimate.hpp"
#include "tests/sim/pipeline.hpp"

using namespace kestrel;
using namespace kestrel::sim;

namespace {

bool has(const std::vector<Finding>& findings, const std::string& code) {
    return std::any_of(findings.begin(), findings.end(), [&code](const Finding& f) { return f.code == code; });
}

Plan plan_with(int replicates) {
    PlanRequest request;
    request.replicates = replicates;
    request.tokens = 4;
    return make_plan(request);
}

std::vector<Window> windows_of(const Scenario& scenario, const Plan& plan, std::uint64_t seed) {
    Normal normal{Random(seed)};
    std::vector<Window> windows;
    simulate(scenario, plan, 0, plan.replicates, normal, windows);
    return windows;
}

std::vector<double> normal_values(std::uint64_t seed, std::size_t count) {
    Normal normal{Random(seed)};
    std::vector<double> values(count);
    for (double& value : values) value = 0.001 * normal.next();
    return values;
}

}  // namespace

TEST_CASE("check_order_effects: each planted effect is named, and says what it does") {
    const Plan plan = plan_with(12);
    struct Case {
        const char* code;
        void (*change)(Scenario&);
    };
    for (const Case& c : {Case{"DRIFT", [](Scenario& s) { s.drift = 0.01; }}, Case{"SLOT", [](Scenario& s) { s.second_slot = 0.003; }},
                          Case{"PREVIOUS_ARM", [](Scenario& s) { s.after_base = 0.003; }}}) {
        Scenario scenario;
        c.change(scenario);
        const std::vector<Window> windows = windows_of(scenario, plan, 5);
        const std::vector<Finding> findings = check_order_effects(plan, windows);
        INFO(c.code);
        CHECK(has(findings, c.code));
        for (const Finding& finding : findings) CHECK_FALSE(finding.advice.empty());
        CHECK_FALSE(has(check_order_effects(plan, windows_of(Scenario{}, plan, 5)), c.code));
    }
}

TEST_CASE("check_order_effects: neighbouring super-rounds that resemble each other, and a difference that drifts") {
    PlanRequest request;
    request.replicates = 30;
    request.super_rounds = 8;
    const Plan plan = make_plan(request);
    std::vector<Window> windows = windows_of(Scenario{}, plan, 6);
    std::vector<Window> drifting = windows;
    Normal normal{Random(8)};
    double state = 0.0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
        if (i % 18 == 0) state = windows[i].super_round == 0 ? normal.next() : 0.95 * state + 0.3 * normal.next();
        if (windows[i].arm != ArmRole::candidate) continue;
        windows[i].window_ns = std::llround(static_cast<double>(windows[i].window_ns) * (1.0 + 0.01 * state));
        drifting[i].window_ns = std::llround(static_cast<double>(drifting[i].window_ns) * (1.0 + 0.001 * windows[i].super_round));
    }
    CHECK(has(check_order_effects(plan, windows), "AUTOCORRELATION"));
    CHECK(has(check_order_effects(plan, drifting), "DRIFT_DIFFERENCE"));
}

TEST_CASE("check_contrasts: two groups, an outlier and a trend are doubts") {
    for (const std::size_t count : {6U, 12U, 30U}) {
        INFO(count << " replicates");
        std::vector<double> values = normal_values(3, count);
        CHECK(check_contrasts(values, "candidate").empty());
        std::vector<double> two = values;
        for (std::size_t i = 0; i < count; ++i) two[i] += i % 3 == 0 ? 0.05 : 0.0;
        CHECK(has(check_contrasts(two, "candidate"), "MODES"));
        std::vector<double> one = values;
        one[2] += 0.1;
        const std::vector<Finding> found = check_contrasts(one, "control");
        REQUIRE(has(found, "OUTLIER"));
        CHECK_THAT(found.front().sentence, Catch::Contains("replicate 2 of the control"));
        std::vector<double> trend = values;
        for (std::size_t i = 0; i < count; ++i) trend[i] += 0.01 * static_cast<double>(i);
        CHECK(has(check_contrasts(trend, "candidate"), "TREND"));
    }
    CHECK(check_contrasts(std::vector<double>{0.0, 0.0, 0.0, 0.0, 1.0}, "candidate").empty());       // five say too little
    CHECK(check_contrasts(std::vector<double>{0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, "candidate").empty());  // nothing scatters
}

TEST_CASE("split_share: the share of the best split with two on each side") {
    CHECK(split_share(std::vector<double>{1, 1, 3, 3}) == Approx(1.0));
    CHECK(split_share(std::vector<double>{3, 1, 1, 3, 3}) == Approx(1.0));
    CHECK(split_share(std::vector<double>{0, 0, 0, 0, 0, 9}) < 0.5);     // one alone is no group: {0, 9} against {0, 0, 0, 0}
    CHECK(split_share(std::vector<double>{1, 2, 3, 4}) == Approx(0.8));  // between 4 of 5
    CHECK(split_share(std::vector<double>{5, 5, 5, 5}) == 0.0);
    CHECK(split_share(std::vector<double>{1, 9, 1}) == 0.0);
}

TEST_CASE("guards: undisturbed values alarm as rarely as stated") {
    // Three tests at 0.001 each on 20000 sets: 60 expected, standard deviation 7.7; five of them on either side. Grubbs' limit is a
    // Bonferroni bound and the split's a rounded quantile, so a little below is normal.
    for (const std::size_t count : {6U, 12U, 30U}) {
        int alarms = 0;
        for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
            alarms += static_cast<int>(check_contrasts(normal_values(1000 + seed * 7919, count), "candidate").size());
        }
        INFO(count << " replicates");
        CHECK(alarms < 99);
        CHECK(alarms > 21);
    }
}

TEST_CASE("assess: a doubt keeps a session from stopping, and from a verdict at the end") {
    const Plan plan = plan_with(12);
    Scenario scenario;
    scenario.effect = 0.05;
    Evidence clean;
    clean.outputs_equal = true;
    clean.outputs_vacuous = false;
    std::vector<Window> windows = windows_of(scenario, plan, 9);
    std::vector<Window> first(windows.begin(), windows.begin() + 6 * 4 * 18);
    CHECK(assess(plan, first, clean).verdict.kind == VerdictKind::faster);
    CHECK(assess(plan, first, clean).may_stop);
    for (Window& window : windows) {
        if (window.replicate == 3 && window.arm == ArmRole::candidate) window.window_ns = window.window_ns * 3 / 2;
    }
    first.assign(windows.begin(), windows.begin() + 6 * 4 * 18);
    const Assessment doubtful = assess(plan, first, clean);
    CHECK(doubtful.verdict.kind == VerdictKind::undecided);
    CHECK_FALSE(doubtful.may_stop);
    const Assessment last = assess(plan, windows, clean);
    CHECK(last.may_stop);
    CHECK(last.verdict.kind == VerdictKind::undecided);
}
