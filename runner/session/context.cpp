#include "runner/session/context.hpp"

#include <cstdio>
#include <filesystem>

#include "runner/identity/sha256.hpp"
#include "runner/platform/files.hpp"
#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"

namespace kestrel::session {
namespace {

const ContextState& of(const ContextStates& states, ArmRole role) {
    return states.at(index_of(role));
}

std::string seconds_text(double seconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f s", seconds);
    return text.data();
}

bool same_state(const ContextStates& states) {
    return of(states, ArmRole::base).sha256 == of(states, ArmRole::candidate).sha256;
}

}  // namespace

ContextStates context_states(const nlohmann::json& saved) {
    ContextStates states;
    for (const nlohmann::json& one : saved.at("contexts")) {
        ContextState& state = states.at(index_of(one.at("role").get<ArmRole>()));
        state.path = one.at("path").get<std::string>();
        state.sha256 = one.at("sha256").get<std::string>();
        state.bytes = one.at("bytes").get<std::uint64_t>();
        state.seconds = one.at("seconds").get<double>();
    }
    states.at(index_of(ArmRole::control)) = of(states, ArmRole::base);
    return states;
}

std::string context_text(int tokens, const ContextStates& states) {
    const ContextState& base = of(states, ArmRole::base);
    const ContextState& candidate = of(states, ArmRole::candidate);
    const std::string text = std::to_string(tokens) + " tokens, decoded by base in " + seconds_text(base.seconds) +
                             " and by candidate in " + seconds_text(candidate.seconds) + "; the states after them ";
    if (same_state(states)) return text + "are bit-identical, one file of " + std::to_string(base.bytes) + " bytes";
    return text + "differ, files of " + std::to_string(base.bytes) + " and " + std::to_string(candidate.bytes) + " bytes";
}

void compare_contexts(const Plan& plan, const ContextStates& states, Evidence& evidence) {
    if (plan.output_rule != "bit-identical" || same_state(states)) return;
    evidence.outputs_equal = false;
    evidence.output_text = "outputs differ, first in the state after the context of " + std::to_string(plan.position) +
                           " tokens: SHA-256 " + of(states, ArmRole::base).sha256 + " of base, " + of(states, ArmRole::candidate).sha256 +
                           " of candidate";
}

void write_context(const std::string& path, std::span<const std::byte> state) {
    try {
        if (state.size() > platform::largest_file()) {
            throw Error(ExitCode::storage, "this process may not write a file of that size (ulimit -f)");
        }
        platform::File file = platform::File::create(std::filesystem::path(path).parent_path().string(), ".incoming-");
        file.reserve(state.size());
        file.write_at(0, state);
        file.put_in_place(path);
    } catch (const Error& error) {
        throw Error(ExitCode::storage, "the state after the context, " + std::to_string(state.size()) + " bytes, cannot be kept as " +
                                           path + ": " + error.what() +
                                           "; make room there, or choose another place for the database (--db)");
    }
}

std::vector<std::byte> read_context(const std::string& path, const std::string& sha256) {
    std::vector<std::byte> state;
    try {
        const platform::File file = platform::File::open_to_read(path);
        state.resize(file.size());
        file.read_at(0, state);
    } catch (const Error& error) {
        throw Error(ExitCode::invalid, "the state after the context cannot be read back: " + std::string(error.what()) +
                                           "; keep other programs away from the session's files and run again");
    }
    const std::string found = sha256_hex({reinterpret_cast<const char*>(state.data()), state.size()});
    if (found != sha256) {
        throw Error(ExitCode::invalid, path + ", the state after the context, is damaged: expected SHA-256 " + sha256 + ", found " + found +
                                           " of " + std::to_string(state.size()) +
                                           " bytes; keep other programs away from the session's files and run again");
    }
    return state;
}

}  // namespace kestrel::session
