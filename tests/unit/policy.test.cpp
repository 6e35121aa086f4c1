#include "runner/plan/policy.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "runner/plan/boundaries.hpp"
#include "runner/plan/choose.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/power.hpp"
#include "runner/record/error.hpp"
#include "runner/stats/ledger.hpp"
#include "tests/sim/pipeline.hpp"

using namespace kestrel;

namespace {

std::string refusal(const std::string& text) {
    try {
        (void)parse_policy(text, "p.toml");
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::usage);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("parse_policy: the policies that ship") {
    for (const char* name : {"default", "release"}) {
        std::ifstream file(std::string(KESTREL_CONFIGS) + "/../policies/" + name + ".toml");
        std::stringstream text;
        text << file.rdbuf();
        const Policy policy = parse_policy(text.str(), name);
        CHECK(policy.name == name);
        CHECK(policy.maximum_replicates % 6 == 0);
        CHECK(policy.output_rule == "bit-identical");
    }
    const Policy least = parse_policy("name = 'x'\nmargin_percent = 2\n", "p.toml");
    CHECK(least.margin == Approx(0.02));
    CHECK(least.alpha == 0.05);
    CHECK(least.maximum_replicates == 30);
}

TEST_CASE("parse_policy: refuses, naming file, key and what is allowed") {
    const std::string start = "name = 'x'\nmargin_percent = 1.0\n";
    const std::vector<std::pair<std::string, const char*>> cases{
        {"margin_percent = 1.0", "'name' is missing"},
        {"name = 'x'", "'margin_percent' is missing"},
        {start + "alhpa = 0.05", "unknown key 'alhpa'; allowed: name, margin_percent, alpha"},
        {start + "alpha = '0.05'", "'alpha' must be a number from 1e-04 to 0.5"},
        {start + "alpha = 0.0", "'alpha' must be"},
        {start + "alpha = nan", "'alpha' must be"},
        {start + "power = 1.0", "'power' must be"},
        {start + "control_confidence = 1.0", "'control_confidence' must be"},
        {start + "effect_in_margins = 1.0", "'effect_in_margins' must be"},
        {start + "maximum_replicates = 20", "multiple of six"},
        {start + "maximum_replicates = 606", "an integer from 6 to 600"},
        {start + "maximum_replicates = 12.0", "an integer from 6 to 600"},
        {start + "super_rounds = 0", "'super_rounds' must be"},
        {start + "output_rule = 'close'", "'output_rule' must be"},
        {start + "output_rule = 3", "'output_rule' must be"},
        {"name = ''\nmargin_percent = 1.0", "'name' must be a text"},
        {start + "alpha = ", "p.toml: "},
    };
    for (const auto& [text, words] : cases) {
        INFO(text);
        CHECK_THAT(refusal(text), Catch::Contains(words) && Catch::StartsWith("p.toml"));
    }
}

TEST_CASE("power: agrees with simulated t intervals") {
    // 4000 sets of six; a binomial proportion's standard error is at most 0.0079, five of them 0.04.
    const Prospect prospect{0.002, 0.0015, 0.005, 6, 0.95};
    sim::Normal normal{Random(12)};
    int inside = 0;
    int above = 0;
    for (int trial = 0; trial < 4000; ++trial) {
        std::vector<double> values(6);
        for (double& value : values) value = prospect.effect + prospect.sd * normal.next();
        const double n = 6.0;
        double sum = 0.0;
        double squares = 0.0;
        for (const double v : values) sum += v;
        for (const double v : values) squares += (v - sum / n) * (v - sum / n);
        const double half = 2.570582 * std::sqrt(squares / 5.0 / n);
        inside += sum / n - half > -prospect.delta && sum / n + half < prospect.delta ? 1 : 0;
        above += sum / n - half > 0.0 ? 1 : 0;
    }
    CHECK(probability_inside_margin(prospect) == Approx(inside / 4000.0).margin(0.04));
    CHECK(probability_above_zero(prospect) == Approx(above / 4000.0).margin(0.04));
    CHECK(probability_above_zero({0.0, 0.001, 0.01, 6, 0.95}) == Approx(0.025).margin(0.001));  // no effect: half of 5 %
}

TEST_CASE("choose_length: as short as the power allows, never above the policy") {
    Policy policy;
    const ChosenLength quiet = choose_length(policy, 0.01, 0.0002);
    CHECK(quiet.replicates == 6);
    CHECK(quiet.is_enough);
    int before = 0;
    for (const double sd : {0.001, 0.003, 0.005, 0.007, 0.009}) {
        const ChosenLength chosen = choose_length(policy, 0.01, sd);
        CHECK(chosen.replicates % 6 == 0);
        CHECK(chosen.replicates >= before);
        CHECK(chosen.is_enough);
        CHECK(std::min(chosen.power_same, chosen.power_effect) >= policy.power);
        before = chosen.replicates;
        policy.maximum_replicates = 60;
    }
    CHECK(before > 6);
    policy.maximum_replicates = 12;
    const ChosenLength loud = choose_length(policy, 0.01, 0.05);
    CHECK(loud.replicates == 12);
    CHECK_FALSE(loud.is_enough);
    const ChosenLength unknown = choose_length(policy, 0.01, std::nullopt);
    CHECK(unknown.replicates == 12);
    CHECK_FALSE(unknown.is_enough);
    CHECK_THROWS_AS(choose_length(policy, 0.0, 0.01), Error);
    CHECK_THROWS_AS(choose_length(policy, 0.01, std::nan("")), Error);
}

TEST_CASE("choose_length: a session of the chosen length reaches a verdict as often as promised") {
    Policy policy;
    const double sd = 0.0025;
    const ChosenLength chosen = choose_length(policy, 0.005, sd);
    REQUIRE(chosen.is_enough);
    sim::Row row;
    row.margin = 0.005;
    row.replicates = chosen.replicates;
    // What windows add to the scatter of a contrast: two arms, 24 windows each, and noise of window and of four tokens.
    const double windows = 0.003 * 0.003 * (1.0 + 1.0 / 4.0) * 2.0 / 24.0;
    row.scenario.placement = std::sqrt(sd * sd - windows);
    sim::Options options;
    options.sessions = 400;
    options.naive = false;
    const sim::Counts same = run_row(row, options);
    CHECK(exact_proportion(same.verdicts[static_cast<std::size_t>(VerdictKind::same)], options.sessions).hi > policy.power);
    row.scenario.effect = 2.0 * std::log1p(0.005);
    const sim::Counts faster = run_row(row, options);
    CHECK(exact_proportion(faster.verdicts[static_cast<std::size_t>(VerdictKind::faster)], options.sessions).hi > policy.power);
}

TEST_CASE("smallest_resolvable_effect and expected_seconds") {
    const Policy policy;
    const double effect = smallest_resolvable_effect(policy, 12, 0.005);
    const double confidence = obrien_fleming_looks(12, policy.alpha).back().confidence;
    CHECK(probability_above_zero({std::log1p(effect), 0.005, 0.0, 12, confidence}) == Approx(policy.power).margin(0.005));
    CHECK(smallest_resolvable_effect(policy, 30, 0.005) < effect);
    CHECK(smallest_resolvable_effect(policy, 12, 0.01) > 1.9 * effect);

    PlanRequest request;
    request.replicates = 12;
    request.tokens = 9;
    const ExpectedSeconds seconds = expected_seconds(make_plan(request), {2.0, 5.0});
    // 4 super-rounds of 19 windows of 10 tokens of 5 ms are 3.8 s; 2 s beside that.
    CHECK(seconds.first_look == Approx(6 * 5.8));
    CHECK(seconds.maximum == Approx(12 * 5.8));
    // 1000 tokens of context are decoded twice in a session, however many replicates it has.
    request.position = 1000;
    const ExpectedSeconds later = expected_seconds(make_plan(request), {2.0, 5.0});
    CHECK(later.first_look == Approx(10.0 + 6 * 5.8));
    CHECK(later.maximum == Approx(10.0 + 12 * 5.8));
}
