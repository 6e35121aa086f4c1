// The short form of the table in tests/data/simulation: the same rows, fewer sessions, bounds from the binomial distribution.
#include <catch2/catch.hpp>

#include "tests/sim/pipeline.hpp"

using namespace kestrel;
using namespace kestrel::sim;

namespace {

constexpr std::int64_t sessions = 1000;

Counts counts_of(const std::string& name, double margin, int replicates) {
    for (const Row& row : all_rows()) {
        if (row.scenario.name != name || row.margin != margin || row.replicates != replicates) continue;
        Options options;
        options.sessions = sessions;
        options.seed = 77;
        return run_row(row, options);
    }
    throw std::runtime_error("no row " + name);
}

std::int64_t of(const Counts& counts, VerdictKind kind) {
    return counts.verdicts.at(static_cast<std::size_t>(kind));
}

}  // namespace

TEST_CASE("clopper_pearson: known intervals") {
    CHECK(clopper_pearson(0, 10).low == 0.0);
    CHECK(clopper_pearson(0, 10).high == Approx(0.30850).margin(5e-5));  // 1 - 0.025^(1/10)
    CHECK(clopper_pearson(5, 100).low == Approx(0.01643).margin(5e-5));
    CHECK(clopper_pearson(5, 100).high == Approx(0.11284).margin(5e-5));
}

TEST_CASE("simulation: identical arms are called the same, and seldom anything else") {
    for (const auto& [name, margin, replicates] : {std::tuple{"clean, 0.1 %", 0.005, 6}, std::tuple{"clean, streams 0.18 %", 0.005, 12}}) {
        const Counts counts = counts_of(name, margin, replicates);
        INFO(name);
        CHECK(counts.sessions == sessions);
        CHECK(of(counts, VerdictKind::same) + of(counts, VerdictKind::undecided) + of(counts, VerdictKind::invalid) +
                  of(counts, VerdictKind::faster) + of(counts, VerdictKind::slower) ==
              sessions);
        // SAME >= 90 %: also the lower end of its exact interval.
        CHECK(clopper_pearson(of(counts, VerdictKind::same), sessions).low > 0.9);
        CHECK(clopper_pearson(of(counts, VerdictKind::invalid), sessions).high < 0.03);
        CHECK(clopper_pearson(of(counts, VerdictKind::faster) + of(counts, VerdictKind::slower), sessions).high < 0.06);
        // The interval by itself: 5 %, and what is seen is compatible with 4 to 6 %.
        CHECK(clopper_pearson(counts.excludes_0, sessions).low < 0.06);
        CHECK(clopper_pearson(counts.excludes_0, sessions).high > 0.04);
        // What a test inside one process makes of the same machine.
        CHECK(clopper_pearson(counts.naive_t, sessions).low > 0.3);
        CHECK(clopper_pearson(counts.naive_u, sessions).low > 0.3);
    }
}

TEST_CASE("simulation: what the schedule is to cancel, cancels") {
    for (const char* name : {"linear drift 1 %", "boost decay 2 %", "AR(1) 0.9", "second slot 0.3 %", "run after base 0.3 %",
                             "period-4 spike 0.6 %", "heavy tails of windows"}) {
        const Counts counts = counts_of(name, 0.005, 12);
        INFO(name);
        CHECK(clopper_pearson(counts.excludes_0, sessions).low < 0.06);
        CHECK(clopper_pearson(of(counts, VerdictKind::faster) + of(counts, VerdictKind::slower), sessions).high < 0.06);
        CHECK(clopper_pearson(of(counts, VerdictKind::same), sessions).low > 0.9);
        CHECK(clopper_pearson(of(counts, VerdictKind::invalid), sessions).high < 0.03);
    }
}

TEST_CASE("simulation: twice the margin is found") {
    Row row;
    row.scenario.effect = 0.01;
    row.margin = 0.005;
    row.replicates = 18;
    Options options;
    options.sessions = 300;
    options.naive = false;
    const Counts faster = run_row(row, options);
    CHECK(clopper_pearson(of(faster, VerdictKind::faster), options.sessions).low > 0.9);
    CHECK(faster.replicates < 18 * options.sessions);  // some stop at an early look
    row.scenario.effect = -0.01;
    CHECK(clopper_pearson(of(run_row(row, options), VerdictKind::slower), options.sessions).low > 0.9);
}

TEST_CASE("simulation: the table depends on the seed, not on the number of threads") {
    Row row;
    row.replicates = 6;
    Options options;
    options.sessions = 60;
    const Counts one = run_row(row, options);
    options.threads = 3;
    const Counts three = run_row(row, options);
    CHECK(one.verdicts == three.verdicts);
    CHECK(one.excludes_0 == three.excludes_0);
    CHECK(one.naive_t == three.naive_t);
}
