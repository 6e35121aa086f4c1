#include "runner/stats/looks.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "runner/plan/plan.hpp"
#include "runner/plan/random.hpp"
#include "runner/record/json.hpp"
#include "runner/stats/interval.hpp"

using namespace kestrel;

TEST_CASE("obrien_fleming_constant: the published constants") {
    // Jennison and Turnbull, Group Sequential Methods (2000), table 2.3, C_B(K, alpha); printed to three decimals.
    struct Row {
        int looks;
        double at_05, at_10;
    };
    for (const Row& row : {Row{1, 1.960, 1.645}, Row{2, 1.977, 1.678}, Row{3, 2.004, 1.710}, Row{4, 2.024, 1.733}, Row{5, 2.040, 1.751},
                           Row{6, 2.053, 1.765}, Row{7, 2.063, 1.776}, Row{8, 2.072, 1.786}, Row{9, 2.080, 1.794}, Row{10, 2.087, 1.801}}) {
        INFO(row.looks << " looks");
        CHECK(std::abs(obrien_fleming_constant(row.looks, 0.05) - row.at_05) < 0.00055);
        CHECK(std::abs(obrien_fleming_constant(row.looks, 0.10) - row.at_10) < 0.00055);
    }
    CHECK(obrien_fleming_constant(2, 0.01) == Approx(2.580).margin(0.00055));
    CHECK(obrien_fleming_constant(100, 0.05) < 2.2415);  // the limit of many looks: P(max |B| > c) = 0.05 for Brownian motion
    CHECK_THROWS_AS(obrien_fleming_constant(0, 0.05), std::invalid_argument);
    CHECK_THROWS_AS(obrien_fleming_constant(101, 0.05), std::invalid_argument);
    CHECK_THROWS_AS(obrien_fleming_constant(3, 0.0), std::invalid_argument);
    CHECK_THROWS_AS(obrien_fleming_constant(3, std::nan("")), std::invalid_argument);
}

TEST_CASE("obrien_fleming_looks: every six replicates, strict at first") {
    const std::vector<Look> looks = obrien_fleming_looks(18, 0.05);
    REQUIRE(looks.size() == 3);
    for (std::size_t k = 0; k < 3; ++k) CHECK(looks[k].replicates == 6 * static_cast<int>(k + 1));
    // Boundaries 3.471, 2.454, 2.004 (same table times sqrt(3 / k)) as two-sided p: 0.000518, 0.01413, 0.04507.
    CHECK(1.0 - looks[0].confidence == Approx(0.000518).margin(0.000004));
    CHECK(1.0 - looks[1].confidence == Approx(0.01413).margin(0.00005));
    CHECK(1.0 - looks[2].confidence == Approx(0.04507).margin(0.0001));
    CHECK(obrien_fleming_looks(6, 0.05) == std::vector<Look>{{6, 0.95}});
    CHECK(obrien_fleming_looks(7, 0.05) == std::vector<Look>{{7, 0.95}});
    CHECK(obrien_fleming_looks(600, 0.05).front().confidence < 1.0);
    CHECK_THROWS_AS(obrien_fleming_looks(0, 0.05), std::invalid_argument);
}

TEST_CASE("confidence_at and is_look: with looks and without") {
    Plan plan;
    plan.replicates = 12;
    CHECK(confidence_at(plan, 12) == 0.95);
    CHECK(is_look(plan, 12));
    CHECK_FALSE(is_look(plan, 6));
    CHECK_FALSE(is_look(plan, 0));
    plan.looks = {{6, 0.99}, {12, 0.96}};
    CHECK(confidence_at(plan, 3) == 0.99);
    CHECK(confidence_at(plan, 6) == 0.99);
    CHECK(confidence_at(plan, 11) == 0.99);
    CHECK(confidence_at(plan, 12) == 0.96);
    CHECK(is_look(plan, 6));
    CHECK_FALSE(is_look(plan, 7));
    CHECK_FALSE(is_look(plan, 0));
}

TEST_CASE("looks: identical arms are called different at some look as often as planned") {
    // 4000 sequences of up to 18 normal values, so 200 +- 14 expected; four standard errors on either side.
    const std::vector<Look> looks = obrien_fleming_looks(18, 0.05);
    Random random(99);
    int crossed = 0;
    int naive = 0;
    for (int trial = 0; trial < 4000; ++trial) {
        std::vector<double> values;
        bool any = false;
        bool any_naive = false;
        for (const Look& look : looks) {
            while (values.size() < static_cast<std::size_t>(look.replicates)) {
                double sum = -6.0;
                for (int i = 0; i < 12; ++i) sum += static_cast<double>(random.next() >> 11U) * 0x1.0p-53;
                values.push_back(sum);
            }
            const auto excludes = [](const Interval& i) { return i.lo > 0.0 || i.hi < 0.0; };
            any = any || excludes(t_interval(values, look.confidence));
            any_naive = any_naive || excludes(t_interval(values, 0.95));
        }
        crossed += any ? 1 : 0;
        naive += any_naive ? 1 : 0;
    }
    CHECK(crossed > 144);
    CHECK(crossed < 256);
    CHECK(naive > 320);  // the same looks at an unchanged 95 %
}

TEST_CASE("Plan: looks are written, and a plan from before them reads and hashes as it did") {
    PlanRequest request;
    request.replicates = 12;
    request.policy = "release";
    const Plan plan = make_plan(request);
    REQUIRE(plan.looks.size() == 2);
    const Plan again = nlohmann::json(plan).get<Plan>();
    CHECK(again.looks == plan.looks);
    CHECK(again.policy == "release");

    Plan old = plan;
    old.looks.clear();
    old.policy.clear();
    const nlohmann::json j = old;
    for (const char* added : {"looks", "policy", "control_sd"}) CHECK_FALSE(j.contains(added));
    const Plan read = j.get<Plan>();
    CHECK(read.looks.empty());
    CHECK(canonical_json(read) == canonical_json(old));
}
