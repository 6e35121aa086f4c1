// The short form of the table in tests/data/simulation: the same rows, fewer sessions, bounds from the binomial distribution.
#include <catch2/catch.hpp>

#include "runner/stats/ledger.hpp"
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

TEST_CASE("exact_proportion: known intervals") {
    CHECK(exact_proportion(0, 10).lo == 0.0);
    CHECK(exact_proportion(0, 10).hi == Approx(0.30850).margin(5e-5));  // 1 - 0.025^(1/10)
    CHECK(exact_proportion(5, 100).lo == Approx(0.01643).margin(5e-5));
    CHECK(exact_proportion(5, 100).hi == Approx(0.11284).margin(5e-5));
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
        CHECK(exact_proportion(of(counts, VerdictKind::same), sessions).lo > 0.9);
        CHECK(exact_proportion(of(counts, VerdictKind::invalid), sessions).hi < 0.03);
        CHECK(exact_proportion(of(counts, VerdictKind::faster) + of(counts, VerdictKind::slower), sessions).hi < 0.06);
        // The interval by itself: 5 %, and what is seen is compatible with 4 to 6 %.
        CHECK(exact_proportion(counts.excludes_0, sessions).lo < 0.06);
        CHECK(exact_proportion(counts.excludes_0, sessions).hi > 0.04);
        // What a test inside one process makes of the same machine.
        CHECK(exact_proportion(counts.naive_t, sessions).lo > 0.3);
        CHECK(exact_proportion(counts.naive_u, sessions).lo > 0.3);
    }
}

TEST_CASE("simulation: what the schedule is to cancel, cancels") {
    for (const char* name : {"linear drift 1 %", "boost decay 2 %", "AR(1) 0.9", "second slot 0.3 %", "run after base 0.3 %",
                             "period-4 spike 0.6 %", "heavy tails of windows"}) {
        const Counts counts = counts_of(name, 0.005, 12);
        INFO(name);
        CHECK(exact_proportion(counts.excludes_0, sessions).lo < 0.06);
        CHECK(exact_proportion(of(counts, VerdictKind::faster) + of(counts, VerdictKind::slower), sessions).hi < 0.06);
        CHECK(exact_proportion(of(counts, VerdictKind::same), sessions).lo > 0.9);
        CHECK(exact_proportion(of(counts, VerdictKind::invalid), sessions).hi < 0.03);
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
    CHECK(exact_proportion(of(faster, VerdictKind::faster), options.sessions).lo > 0.9);
    CHECK(faster.replicates < 18 * options.sessions);  // some stop at an early look
    row.scenario.effect = -0.01;
    CHECK(exact_proportion(of(run_row(row, options), VerdictKind::slower), options.sessions).lo > 0.9);
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
