// NVIDIA's management library, loaded at run time: builds and machines without a GPU need none of it. Its calls may hang inside the driver,
// so only a process that may be killed uses this (runner/telemetry/gpu_source.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runner/platform/shared_library.hpp"

namespace kestrel::platform {

inline constexpr const char* nvml_library = "libnvidia-ml.so.1";

class Nvml {
  public:
    // Loads and initialises the library and finds the device, "GPU-" and a UUID. Throws Error(invalid) that names what failed.
    Nvml(const std::string& library, const std::string& uuid);

    // What the device says now. A value that this device, driver or container does not tell is absent:
    //   sm_mhz, memory_mhz, temperature_c, power_w
    //   throttle_reasons               bits, see below
    //   ecc_corrected, ecc_uncorrected since the driver was loaded
    //   processes                      with a compute context on the device
    //   other_processes, other_pid.N   without `worker_pid`, which has one: in a container all have foreign numbers or none is shown
    [[nodiscard]] std::map<std::string, double> read(std::int64_t worker_pid) const;

  private:
    template <typename Function>
    [[nodiscard]] Function function(const char* name) const;  // throws if there is none
    void read_processes(std::int64_t worker_pid, std::map<std::string, double>& values) const;

    SharedLibrary library_;
    void* device_ = nullptr;
};

}  // namespace kestrel::platform
