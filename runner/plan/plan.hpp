// Everything that is decided before the first round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

// What the user or the experiment's configuration asks for; units as in Plan.
struct PlanRequest {
    std::string experiment = "ad-hoc";
    int experiment_version = 1;
    std::uint64_t seed = 0;
    int replicates = 6;
    int super_rounds = 4;
    int tokens = 16;
    int position = 0;
    int threads = 0;
    double margin = 0.01;
    double confidence = 0.95;
    double control_confidence = 0.99;
    std::string output_rule = "bit-identical";  // or "tolerance:<relative difference>"
    std::string policy;
    double control_sd = 0.0;
};

inline constexpr std::int64_t padding_step_bytes = 64;                // one cache line
inline constexpr std::int64_t padding_limit_bytes = 2 * 1024 * 1024;  // one large page: reaches every page offset

// The plan of a session, all of it a function of the request: per replicate a load order (each of the six orders once in
// every six replicates, shuffled), a scratch padding (a multiple of 64 bytes, 0 to 2 MiB) and one balanced sequence for each
// super-round, and looks every six replicates (looks.hpp). `sha256` is left empty: the caller fills it. Throws Error{usage} if the request
// makes no sense.
[[nodiscard]] Plan make_plan(const PlanRequest& request);

// "bit-identical", or "tolerance:" and a number above 0 and below 1.
[[nodiscard]] bool is_output_rule(const std::string& rule);

// `count` tokens, uniform in [0, vocab). Throws Error{usage} unless both are positive.
[[nodiscard]] std::vector<std::int32_t> teacher_tokens(std::uint64_t seed, int count, int vocab);

}  // namespace kestrel
