// Many simulated sessions through the code that ships, and through the ways that people use instead.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tests/sim/scenario.hpp"

namespace kestrel::sim {

struct Row {
    Scenario scenario;
    double margin = 0.01;
    int replicates = 12;  // the planned maximum
    int super_rounds = 4;
};

struct Options {
    std::int64_t sessions = 20'000;
    std::uint64_t seed = 1;
    int threads = 1;
    int tokens = 4;  // per window: enough for a 99th percentile of a replicate, and fast
    bool naive = true;
};

// Counts of sessions; the denominator is always all of them.
struct Counts {
    std::int64_t sessions = 0;
    std::int64_t misses = 0;                 // no looks, no guards, all replicates: the 95 % interval does not hold the truth
    std::int64_t excludes_0 = 0;             // the same interval excludes 0
    std::array<std::int64_t, 5> verdicts{};  // by VerdictKind, of the full pipeline
    std::int64_t replicates = 0;             // measured by the full pipeline, all sessions together
    std::int64_t naive_t = 0;                // one process, as many windows as the first look has: t test over rounds, p < 0.05
    std::int64_t naive_u = 0;                // the same windows: Mann-Whitney, p < 0.05
    std::int64_t naive_sigma = 0;            // the same windows: a difference of 2.6 standard errors and 1 %
    void add(const Counts& other);
};

[[nodiscard]] Counts run_row(const Row& row, const Options& options);

// Whether rules in common use would call base and candidate different, from the same windows.
struct NaiveAnswers {
    bool t = false;       // t test over paired rounds, p < 0.05
    bool u = false;       // Mann-Whitney over windows, p < 0.05
    bool sigma = false;   // tango's: 2.6 standard errors and 1 %
    bool spread = false;  // hyperfine's ratio of means, its error from the scatter of windows
};
[[nodiscard]] NaiveAnswers naive_answers(const std::vector<Window>& windows);

// The rows of the full table.
[[nodiscard]] std::vector<Row> all_rows();

}  // namespace kestrel::sim
