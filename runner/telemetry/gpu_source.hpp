// The supervisor's side of the process that reads the GPU.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runner/platform/process.hpp"

namespace kestrel::telemetry {

using Values = std::map<std::string, double>;

// Initialising the driver's library takes seconds where no other process keeps the driver loaded; a reading takes about a millisecond.
struct GpuSettings {
    std::string uuid;     // "GPU-..."
    std::string library;  // of the management library
    std::chrono::milliseconds start_deadline{5000};
    std::chrono::milliseconds deadline{200};
};

// Starts the process and does not wait for it. Whatever fails, here or later, ends in "not checked" and never in an exception: a session
// does not depend on its telemetry. After the first missed deadline the process is killed and not asked again.
class GpuSource {
  public:
    explicit GpuSource(GpuSettings settings);

    // What the device says now, or nothing. Waits no longer than the deadline of an answer, before the first one that of the start.
    [[nodiscard]] std::optional<Values> read(std::int64_t worker_pid);

    // Why there is nothing; empty as long as there is something.
    [[nodiscard]] const std::string& problem() const { return problem_; }

    // Of the reading process; absent if it is gone.
    [[nodiscard]] std::optional<std::int64_t> pid() const;

  private:
    [[nodiscard]] bool wait_for_start();
    void give_up(const std::string& why);

    GpuSettings settings_;
    std::unique_ptr<platform::WorkerProcess> process_;
    bool started_ = false;
    std::int64_t asked_ = 0;
    std::string problem_;
};

// "GPU-01234567-89ab-..." from a session's device, "cuda: NAME, UUID <32 hexadecimal digits>, driver API ..."; nothing for a CPU or a
// device of another make.
[[nodiscard]] std::optional<std::string> gpu_uuid(const std::string& device);

}  // namespace kestrel::telemetry
