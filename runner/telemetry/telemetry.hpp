// Readings during a session. One object for each session, one call between two rounds.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "runner/platform/counters.hpp"
#include "runner/platform/nvml.hpp"
#include "runner/record/record.hpp"
#include "runner/telemetry/gpu_source.hpp"

namespace kestrel::telemetry {

struct TelemetrySettings {
    std::string device;                            // Session::device: of which GPU, if any, to read
    std::string library = platform::nvml_library;  // GPU management library
    std::string root = {};                         // before /proc and /sys
    std::chrono::milliseconds start_deadline = GpuSettings{}.start_deadline;
    std::chrono::milliseconds deadline = GpuSettings{}.deadline;
};

// Where in a session a reading is taken; the defaults say before a replicate's first round.
struct ReadingPlace {
    int replicate = 0;
    int super_round = -1;
    int round = -1;
};

class Telemetry {
  public:
    // Begins to start the process that reads the GPU, if the device is one.
    explicit Telemetry(const TelemetrySettings& settings);

    // Call only while the worker waits: what is read would disturb a window. Sources and values, counters since an arbitrary beginning:
    //   cpu         busy_s, steal_s of all CPUs; worker_s: of the worker; own_s: of this process and the one that reads the GPU
    //   pressure    some_s
    //   frequency   mean_mhz
    //   throttling  count
    //   gpu         platform/nvml.hpp
    // Takes some ten microseconds (measured: 20 to 110 on two busy cores), with a GPU about a millisecond (the questions alone take 0.3 ms
    // on an H200, the first ones 10 ms) and never more than the deadlines.
    [[nodiscard]] Reading read(std::int64_t worker_pid, const ReadingPlace& place);

    // Why the GPU is not read; empty if it is, or if there is none.
    [[nodiscard]] std::string gpu_problem() const;

  private:
    void read_cpu(std::int64_t worker_pid, Reading& reading);

    std::chrono::steady_clock::time_point began_;
    platform::HostCounters counters_;
    std::string device_problem_;
    std::unique_ptr<GpuSource> gpu_;
    double reader_s_ = 0.0;  // CPU time of the process that reads the GPU; stays when that is gone, so that the sum only grows
};

}  // namespace kestrel::telemetry
