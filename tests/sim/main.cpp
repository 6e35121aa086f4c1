// kestrel_simulate: the error rates of the verdict, from simulated sessions through the code that ships.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "runner/record/names.hpp"
#include "runner/stats/guards.hpp"
#include "runner/stats/ledger.hpp"
#include "tests/sim/pipeline.hpp"

namespace {

using namespace kestrel;
using namespace kestrel::sim;

constexpr std::array<VerdictKind, 5> kinds{VerdictKind::faster, VerdictKind::slower, VerdictKind::same, VerdictKind::undecided,
                                           VerdictKind::invalid};

std::int64_t count_of(const Counts& counts, VerdictKind kind) {
    return counts.verdicts.at(static_cast<std::size_t>(kind));
}

double percent_of(std::int64_t hits, const Counts& counts) {
    return 100.0 * static_cast<double>(hits) / static_cast<double>(counts.sessions);
}

void print_header(const Options& options) {
    std::printf(
        "# %lld sessions a row, seed %llu, %d tokens a window, 4 super-rounds a replicate; percent of all sessions, [exact 95 %% "
        "interval]\n",
        static_cast<long long>(options.sessions), static_cast<unsigned long long>(options.seed), options.tokens);
    std::printf("# misses, not 0: fixed-sample 95 %% interval after K replicates, no guards: does not hold the truth; excludes 0\n");
    std::printf("# FASTER to INVALID: full pipeline with looks and guards; rep: replicates it needed on average\n");
    std::printf("# t, U, 2.6s: one process, as many windows as six replicates: t over rounds, Mann-Whitney, 2.6 sigma and 1 %%\n");
    std::printf("%-30s %2s %6s %6s %6s | %6s %6s %-14s | %6s %6s %6s %6s %6s %-14s %5s | %5s %5s %5s\n", "row", "K", "sd", "margin",
                "effect", "misses", "not 0", "", "FASTER", "SLOWER", "SAME", "UNDEC.", "INVAL.", "  F + S", "rep", "t", "U", "2.6s");
}

void print_row(const Row& row, const Counts& counts) {
    const Proportion zero = exact_proportion(counts.excludes_0, counts.sessions);
    const std::int64_t different = count_of(counts, VerdictKind::faster) + count_of(counts, VerdictKind::slower);
    const Proportion alarm = exact_proportion(different, counts.sessions);
    std::printf("%-30s %2d %6.2f %6.2f %6.2f | %6.2f %6.2f [%5.2f, %5.2f] |", row.scenario.name.c_str(), row.replicates,
                100.0 * row.scenario.placement, 100.0 * row.margin, 100.0 * row.scenario.effect, percent_of(counts.misses, counts),
                percent_of(counts.excludes_0, counts), 100.0 * zero.lo, 100.0 * zero.hi);
    for (const VerdictKind kind : kinds) std::printf(" %6.2f", percent_of(count_of(counts, kind), counts));
    std::printf(" [%5.2f, %5.2f] %5.1f | %5.1f %5.1f %5.1f\n", 100.0 * alarm.lo, 100.0 * alarm.hi,
                static_cast<double>(counts.replicates) / static_cast<double>(counts.sessions), percent_of(counts.naive_t, counts),
                percent_of(counts.naive_u, counts), percent_of(counts.naive_sigma, counts));
    std::fflush(stdout);
}

nlohmann::json json_of(const Row& row, const Counts& counts) {
    nlohmann::json out{{"row", row.scenario.name},
                       {"replicates", row.replicates},
                       {"super_rounds", row.super_rounds},
                       {"placement_sd", row.scenario.placement},
                       {"margin", row.margin},
                       {"effect", row.scenario.effect},
                       {"truth", row.scenario.truth()},
                       {"sessions", counts.sessions},
                       {"interval_misses_truth", counts.misses},
                       {"interval_excludes_0", counts.excludes_0},
                       {"measured_replicates", counts.replicates},
                       {"naive_t", counts.naive_t},
                       {"naive_mann_whitney", counts.naive_u},
                       {"naive_2_6_sigma_and_1_percent", counts.naive_sigma}};
    for (const VerdictKind kind : kinds) out["verdicts"][std::string(name_of(kind))] = count_of(counts, kind);
    return out;
}

// What guards.cpp holds: the (1 - guard_rate) quantile of split_share for normal values.
void print_critical_values(const Options& options) {
    for (const std::size_t size : {6U, 12U, 18U, 24U, 30U, 36U, 48U, 60U, 120U}) {
        Normal normal(Random(options.seed, RandomPurpose::simulation, size));
        std::vector<double> shares;
        std::vector<double> values(size);
        for (std::int64_t i = 0; i < options.sessions; ++i) {
            for (double& value : values) value = normal.next();
            shares.push_back(split_share(values));
        }
        const auto place = static_cast<std::ptrdiff_t>((1.0 - guard_rate) * static_cast<double>(shares.size()));
        std::nth_element(shares.begin(), shares.begin() + place, shares.end());
        std::printf("%zu values: %.4f\n", size, shares[static_cast<std::size_t>(place)]);
    }
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    std::string filter;
    bool json = false;
    bool critical = false;
    CLI::App app(
        "Error rates of the verdict, from simulated sessions through the code that ships.\n"
        "Example: kestrel_simulate --sessions 5000 --rows drift --threads 4");
    app.add_option("--sessions", options.sessions, "sessions a row")->check(CLI::Range(1, 100'000'000))->capture_default_str();
    app.add_option("--seed", options.seed, "the same seed gives the same table on every machine")->capture_default_str();
    app.add_option("--threads", options.threads, "does not change the table")->check(CLI::Range(1, 1024))->capture_default_str();
    app.add_option("--tokens", options.tokens, "tokens a window")->check(CLI::Range(1, 1000))->capture_default_str();
    app.add_option("--rows", filter, "only rows whose name contains this");
    app.add_flag("--json", json, "counts as JSON, one object a row");
    app.add_flag("--critical-values", critical, "print the constants of the guard against modes instead");
    CLI11_PARSE(app, argc, argv);
    if (critical) {
        print_critical_values(options);
        return 0;
    }
    if (!json) print_header(options);
    for (const Row& row : all_rows()) {
        if (row.scenario.name.find(filter) == std::string::npos) continue;
        const Counts counts = run_row(row, options);
        if (json) {
            std::cout << json_of(row, counts).dump() << std::endl;
        } else {
            print_row(row, counts);
        }
    }
    return 0;
}
