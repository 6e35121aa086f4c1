// What sealed sessions together say about the service.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "runner/stats/ledger.hpp"

using namespace kestrel;

namespace {

LedgerEntry entry(VerdictKind verdict, double control_d) {
    LedgerEntry one;
    one.host = "h";
    one.device = "d";
    one.engine = "e";
    one.launch_mode = "graph";
    one.verdict = verdict;
    one.same_code = true;
    one.candidate = {0.0, -0.01, 0.01, 0.95, 0.005, 6};
    one.control = {control_d, 0.0, 0.0, 0.99, 0.01, 6};
    return one;
}

}  // namespace

TEST_CASE("ledger: exact binomial intervals") {
    // Clopper and Pearson at 95 %: 0 of n has the upper bound 1 - 0.025^(1/n), n of n the lower bound 0.025^(1/n).
    const Proportion none = exact_proportion(0, 40);
    CHECK(none.lo == 0.0);
    CHECK(none.hi == Approx(1.0 - std::pow(0.025, 1.0 / 40.0)));
    const Proportion all = exact_proportion(20, 20);
    CHECK(all.lo == Approx(std::pow(0.025, 1.0 / 20.0)));
    CHECK(all.hi == 1.0);
    // The bounds are where the tails are 2.5 %: P(X >= 18 | p = lo) for 18 of 20, summed here by hand.
    const Proportion most = exact_proportion(18, 20);
    const auto at_least_18 = [](double p) {
        return 190.0 * std::pow(p, 18) * std::pow(1 - p, 2) + 20.0 * std::pow(p, 19) * (1 - p) + std::pow(p, 20);
    };
    CHECK(at_least_18(most.lo) == Approx(0.025));
    CHECK(1.0 - (20.0 * std::pow(most.hi, 19) * (1 - most.hi) + std::pow(most.hi, 20)) == Approx(0.025));
    CHECK(exact_proportion(0, 0) == Proportion{0, 0, 0.0, 1.0});
}

TEST_CASE("ledger: controls are counted at 95 % whatever confidence they were judged at") {
    // K = 6, sd 1 %: the half-width at 95 % is 2.5706 * 0.01 / sqrt(6) = 1.0494 %.
    const std::vector<LedgerEntry> entries{entry(VerdictKind::same, 0.0104), entry(VerdictKind::same, -0.0106),
                                           entry(VerdictKind::same, 0.0)};
    const std::vector<LedgerRow> rows = summarise(entries);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].control_exclusions.count == 1);
    CHECK(rows[0].control_exclusions.of == 3);
    CHECK(rows[0].control_sd == Approx(0.01));
}

TEST_CASE("ledger: answers are held against the truth where it is known") {
    std::vector<LedgerEntry> entries{entry(VerdictKind::same, 0.0), entry(VerdictKind::faster, 0.0), entry(VerdictKind::undecided, 0.0)};
    entries.push_back(entry(VerdictKind::slower, 0.0));
    entries.back().same_code = false;  // two builds: nobody knows the truth
    for (const VerdictKind kind : {VerdictKind::slower, VerdictKind::faster, VerdictKind::same}) {
        LedgerEntry planted = entry(kind, 0.0);
        planted.same_code = false;
        planted.planted_d = -0.02;
        planted.candidate.lo = kind == VerdictKind::same ? -0.01 : -0.03;
        entries.push_back(planted);
    }
    LedgerEntry nothing = entry(VerdictKind::same, 0.0);
    nothing.planted_d = 0.0;
    entries.push_back(nothing);
    const LedgerRow row = summarise(entries).at(0);
    CHECK(row.sessions == 8);
    CHECK(row.false_alarms.count == 1);
    CHECK(row.false_alarms.of == 4);
    CHECK(row.same.count == 2);
    CHECK(row.found.count == 1);  // SLOWER; FASTER would be the wrong name
    CHECK(row.found.of == 3);
    CHECK(row.covered.count == 2);
}

TEST_CASE("ledger: hosts, devices, engines and launch modes are not mixed") {
    std::vector<LedgerEntry> entries(5, entry(VerdictKind::same, 0.0));
    entries[1].host = "other";
    entries[2].device = "other";
    entries[3].engine = "other";
    entries[4].launch_mode = "stream";
    CHECK(summarise(entries).size() == 5);
}

TEST_CASE("ledger: the scatter is pooled by degrees of freedom, and unknown without controls") {
    std::vector<LedgerEntry> entries{entry(VerdictKind::same, 0.0), entry(VerdictKind::same, 0.0)};
    entries[1].control.sd = 0.02;
    entries[1].control.replicates = 16;
    CHECK(pooled_control_sd(entries).value() == Approx(std::sqrt((5 * 1e-4 + 15 * 4e-4) / 20.0)));
    entries[0].control.replicates = 1;
    CHECK(pooled_control_sd(entries).value() == Approx(0.02));
    entries[1].control.sd = std::numeric_limits<double>::quiet_NaN();
    CHECK_FALSE(pooled_control_sd(entries));
}
