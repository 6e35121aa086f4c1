// Message "saved": {contexts: [{role, path, sha256, bytes, seconds}]}, for each arm the file of its state after the context, the file's
// SHA-256 and size, and the seconds in which the arm decoded the context.
#include <algorithm>
#include <chrono>

#include "runner/identity/sha256.hpp"
#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/session/context.hpp"
#include "runner/session/worker_internal.hpp"

namespace kestrel::session {
namespace {

// Tokens between two signs of life: fewer than a supervisor waits for.
constexpr int context_step = 16;

double decode_context(const Job& job, plugin::Engine& engine, ArmRole role, Reporter& reporter) {
    const auto started = std::chrono::steady_clock::now();
    reporter.phase("context", role);
    engine.reset();
    for (int i = 0; i < job.position; ++i) {
        if (i > 0 && i % context_step == 0) reporter.phase("context, token " + std::to_string(i), role);
        (void)engine.decode(job.tokens[static_cast<std::size_t>(i)]);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

// Keeps a state in the arm's own file, unless an earlier arm's holds the same bytes.
ContextState keep(const std::string& own_path, const std::vector<std::byte>& state, const std::vector<ContextState>& earlier) {
    ContextState kept{own_path, sha256_hex({reinterpret_cast<const char*>(state.data()), state.size()}), state.size(), 0.0};
    const auto same = std::find_if(earlier.begin(), earlier.end(), [&](const ContextState& one) { return one.sha256 == kept.sha256; });
    if (same != earlier.end()) {
        kept.path = same->path;
    } else {
        write_context(own_path, state);
    }
    return kept;
}

}  // namespace

void run_context(const Job& job, Reporter& reporter) {
    LoadedArms arms(job, reporter, false);
    std::vector<ContextState> kept;
    nlohmann::json contexts = nlohmann::json::array();
    for (const JobArm& arm : job.arms) {
        plugin::Engine& engine = arms.engine(arm.role);
        const double seconds = decode_context(job, engine, arm.role, reporter);
        reporter.phase("state after the context", arm.role);
        const std::vector<std::byte> state = engine.save_state();
        if (state.empty()) throw Error(ExitCode::usage, "this engine cannot save its state, so only position 0 can be measured");
        reporter.phase("writing the state after the context");
        kept.push_back(keep(arm.context.path, state, kept));
        const ContextState& one = kept.back();
        contexts.push_back({{"role", arm.role}, {"path", one.path}, {"sha256", one.sha256}, {"bytes", one.bytes}, {"seconds", seconds}});
    }
    reporter.send({{"type", "saved"}, {"contexts", contexts}});
}

}  // namespace kestrel::session
