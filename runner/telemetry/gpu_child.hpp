// The process that reads the GPU's management library, because a call into a driver may never return.
#pragma once

#include <string>
#include <vector>

namespace kestrel::telemetry {

inline constexpr const char* gpu_child_argument = "__telemetry";

// Serves worker_channel_fd until it is closed. `arguments` are those after gpu_child_argument: the device's UUID and the library.
//
// Sends one JSON object a line: first {"ready": true} or {"error": why}, and then for every line "N PID" that it gets
// {"number": N, "values": {name: number}} (platform/nvml.hpp names the values), where PID is the process that is being measured.
[[noreturn]] void gpu_child_main(const std::vector<std::string>& arguments);

}  // namespace kestrel::telemetry
