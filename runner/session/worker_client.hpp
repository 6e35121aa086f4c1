// The supervisor's side of one conversation with one worker.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runner/platform/process.hpp"
#include "runner/session/job.hpp"

namespace kestrel::session {

// How a worker ended.
struct WorkerEnd {
    enum class Kind { finished, crashed, hung, failed, interrupted } kind = Kind::finished;
    std::string detail;          // signal or exit code, and the worker's own message if it sent one
    std::string last_phase;      // what it said it would do next
    std::optional<ArmRole> arm;  // whose code it was in, if one arm's
    int error_code = 0;          // with `failed`: the Error's exit code
    std::int64_t max_rss_kib = 0;
};

// Runs `job` in a fresh worker and hands every message but phases to `on_message`; if that returns true the worker gets its "go";
// after "ready" it gets it anyway.
// A worker is finished only if it sent its last message ("inspected", "saved", "done", "checked", "timed") *and* left with exit code 0. An
// exception from `on_message` kills the worker and passes through.
[[nodiscard]] WorkerEnd run_worker(const Job& job, std::optional<int> lock_fd, std::chrono::seconds silence_limit,
                                   const std::function<void(std::int64_t pid)>& on_start,
                                   const std::function<bool(const nlohmann::json&)>& on_message);

[[nodiscard]] std::string name_of(WorkerEnd::Kind kind);  // "finished", "crashed", "hung", "failed", "interrupted"

}  // namespace kestrel::session
