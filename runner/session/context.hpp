// The context of a session: the tokens before the timed position. A worker decodes them once with each build and leaves its state in a file
// (worker_context.cpp); every replicate reads the files and restores a state before each window.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "runner/record/record.hpp"
#include "runner/stats/verdict.hpp"

namespace kestrel::session {

// An arm's state after the context.
struct ContextState {
    std::string path;  // arms whose states are the same bytes share a file
    std::string sha256;
    std::uint64_t bytes = 0;
    double seconds = 0.0;  // in which the arm decoded the context
};
using ContextStates = std::array<ContextState, arm_count>;  // by ArmRole

// From a context worker's message "saved". Control, which is a byte copy of base, gets base's state.
[[nodiscard]] ContextStates context_states(const nlohmann::json& saved);

// For the session's log: times, sizes and whether base and candidate are in the same state.
[[nodiscard]] std::string context_text(int tokens, const ContextStates& states);

// Where the plan's output rule wants equal bits, arms in different states after the same context are a difference in output, and the first
// one. Call it after compare_outputs.
void compare_contexts(const Plan& plan, const ContextStates& states, Evidence& evidence);

// The file of a state is the engine's bytes and nothing else. It is flushed, so that the system has nothing to write while arms are timed.
// Throws Error(storage) naming the path.
void write_context(const std::string& path, std::span<const std::byte> state);

// Throws Error(invalid) naming the path if the file cannot be read or has other bytes than those of this SHA-256.
[[nodiscard]] std::vector<std::byte> read_context(const std::string& path, const std::string& sha256);

}  // namespace kestrel::session
