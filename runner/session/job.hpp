// What the supervisor asks of a worker. One line of JSON each way per message; docs of the answers are in worker.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runner/record/record.hpp"
#include "runner/session/weight_cache.hpp"

namespace kestrel::session {

enum class JobKind {
    inspect,          // load every arm, compare what each makes of the model, report; no timing
    context,          // decode the tokens before the position once and save the arms' states; see worker_context.cpp
    replicate,        // load, warm up, run the super-rounds
    check,            // decode given tokens with one arm and compare with expected logits, or seeded ones with a reference engine
    check_operators,  // run single operators on seeded inputs and compare with a reference engine
    stopwatch,        // decode with two arms in turn and report the plain times; see stopwatch.hpp
};

// The file of an arm's state after the context, where the position is above 0.
struct ContextFile {
    std::string path;    // context: where to save it, replicate: where it lies
    std::string sha256;  // replicate
    bool operator==(const ContextFile&) const = default;
};

struct JobArm {
    ArmRole role = ArmRole::base;
    std::string library;
    std::vector<SwitchSetting> switches;
    std::string artifact;  // SHA-256 of the library
    ContextFile context = {};
    bool operator==(const JobArm&) const = default;
};

struct Job {
    JobKind kind = JobKind::inspect;
    int replicate = 0;
    std::string model;
    int threads = 0;
    int position = 0;
    std::vector<std::int32_t> tokens;  // as Workload::tokens
    std::vector<JobArm> arms;          // in load order
    std::int64_t padding = 0;          // bytes before the lent memory
    std::vector<std::array<ArmRole, 18>> schedule;
    std::string expected;    // check: file with tokens, logits, greedy; empty: against `reference`
    std::string reference;   // check, check_operators: library
    std::string operators;   // check_operators: "gdn", "rq" or "attn"
    std::uint64_t seed = 0;  // of tokens or inputs
    int check_tokens = 0;    // check against a reference: tokens fed, then tokens chosen
    int check_greedy = 0;
    double shallow_tolerance = 0.0;  // check: of max |logit|, for models with fewer than `deep_layers` layers; 0: derived
    double deep_tolerance = 0.0;     // check: for the others
    int deep_layers = 0;
    CacheSettings cache;         // the worker's environment is scrubbed, so all of it comes with the job
    std::string weights_digest;  // replicate: what inspection found; empty: nothing is kept
    std::string weights_block;   // hash of the kept block (weight_file.hpp)
    double seconds = 0.0;        // stopwatch: how long
};

[[nodiscard]] std::string encode(const Job& job);
// Throws std::invalid_argument naming the field.
[[nodiscard]] Job decode_job(const std::string& line);

}  // namespace kestrel::session
