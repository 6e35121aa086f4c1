// One function per command: parsed options in, exit code out. Errors are thrown and become text and exit code in main.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/record/error.hpp"

namespace kestrel::cli {

struct CommonOptions {
    std::string database;
    bool json = false;
};

struct RunOptions {
    std::string experiment;  // empty: ad hoc
    std::string base;
    std::string candidate;
    std::string model;
    std::vector<std::string> base_switches;
    std::vector<std::string> candidate_switches;
    std::optional<int> replicates;
    std::optional<int> super_rounds;
    std::optional<int> tokens;
    std::optional<int> position;
    std::optional<int> threads;
    std::optional<double> margin_percent;
    std::string policy;  // empty: the experiment's
    std::optional<std::uint64_t> seed;
    std::optional<int> patience_seconds;
    bool all_rounds = false;
    bool measure_identical = false;
    bool no_weight_cache = false;
    bool verify_weights = false;
    bool plan_only = false;
};
[[nodiscard]] ExitCode command_run(const CommonOptions& common, const RunOptions& options);

struct SelftestOptions {
    bool ledger = false;
    bool aa = false;
    double planted_percent = 0.0;    // 0: nothing is planted
    int sessions = 10;               // with planted: of which each draws whether anything is planted
    double calibrate_seconds = 3.0;  // of stopwatch in each of ten processes
    std::string engine = "kestrel_cpu";
    RunOptions run;  // model, sizes, policy
};
[[nodiscard]] ExitCode command_selftest(const CommonOptions& common, const SelftestOptions& options);

[[nodiscard]] ExitCode command_list(const CommonOptions& common);
struct ShowOptions {
    std::string session;
    std::string svg;  // file to write, "-" for standard output; empty: text
    bool all_rounds = false;
};
[[nodiscard]] ExitCode command_show(const CommonOptions& common, const ShowOptions& options);
[[nodiscard]] ExitCode command_history(const CommonOptions& common, const std::string& experiment);
[[nodiscard]] ExitCode command_compare(const CommonOptions& common, const std::string& one, const std::string& other);

struct DiffOptions {
    std::string base;
    std::string candidate;
    std::vector<std::string> base_switches;
    std::vector<std::string> candidate_switches;
};
[[nodiscard]] ExitCode command_diff(const CommonOptions& common, const DiffOptions& options);

[[nodiscard]] ExitCode command_doctor(const CommonOptions& common);

struct CheckOptions {
    std::string engine = "kestrel_cpu";
    std::string reference;  // empty: the truth engine beside the engine
    std::string model;
    std::string expected;  // empty: against the reference
    std::vector<std::string> switches;
    double tolerance = 0.0;  // 0: derived
    int threads = 0;
    int tokens = 24;
    int greedy = 16;
    std::uint64_t seed = 1;
};
[[nodiscard]] ExitCode command_check_model(const CommonOptions& common, const CheckOptions& options);
// `operators` is gdn, rq or attn.
[[nodiscard]] ExitCode command_check_operators(const CommonOptions& common, const CheckOptions& options, const std::string& operators);

}  // namespace kestrel::cli
