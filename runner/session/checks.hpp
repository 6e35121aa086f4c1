// Numeric checks: each runs in one worker of its own, the only process that loads the engines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel::session {

// How far logits may be off, relative to max |logit|: rounding grows with depth.
struct CheckTolerance {
    double shallow = 0.0;
    double deep = 0.0;
    int deep_layers = 0;  // from this many layers on, `deep` holds
};

struct CheckResult {
    std::string json;  // message "checked"
    bool passed = false;
};

struct ModelCheck {
    std::string library;
    std::string model;
    std::vector<SwitchSetting> switches;
    int threads = 0;
};

// An engine against expected outputs.
[[nodiscard]] CheckResult check_expected(const ModelCheck& what, const std::string& expected, const CheckTolerance& tolerance);

// An engine against another one, on the same model and seeded tokens.
struct ReferenceCheck {
    std::string library;
    std::uint64_t seed = 0;
    int tokens = 0;
    int greedy = 0;          // then free-running
    double tolerance = 0.0;  // of the largest value of a position; 0: derived from the reference's rounding
};
[[nodiscard]] CheckResult check_reference(const ModelCheck& what, const ReferenceCheck& reference);

// Single operators of two engines; `operators` is gdn, rq or attn.
[[nodiscard]] CheckResult check_operators(const std::string& operators, const std::string& library, const std::string& reference,
                                          std::uint64_t seed);

}  // namespace kestrel::session
