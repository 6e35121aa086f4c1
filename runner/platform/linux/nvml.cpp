// Functions, structures and numbers as documented in NVIDIA's NVML API Reference Guide (docs.nvidia.com/deploy/nvml-api), spelled here once
// more because toolkits do not always bring the header.
#include "runner/platform/nvml.hpp"

#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include "runner/record/error.hpp"

namespace kestrel::platform {
namespace {

using Status = int;  // nvmlReturn_t
constexpr Status success = 0;
constexpr Status insufficient_size = 7;

constexpr int clock_sm = 1;                  // NVML_CLOCK_SM
constexpr int clock_memory = 2;              // NVML_CLOCK_MEM
constexpr int temperature_gpu = 0;           // NVML_TEMPERATURE_GPU
constexpr int memory_error_corrected = 0;    // NVML_MEMORY_ERROR_TYPE_CORRECTED
constexpr int memory_error_uncorrected = 1;  // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int volatile_ecc = 0;              // NVML_VOLATILE_ECC

// nvmlProcessInfo_t of the functions that end in _v2 and _v3.
struct ProcessInfo {
    unsigned pid = 0;
    unsigned long long used_memory = 0;
    unsigned gpu_instance = 0;
    unsigned compute_instance = 0;
};

using Init = Status (*)();
using ErrorString = const char* (*)(Status);
using HandleByUuid = Status (*)(const char*, void**);
using ClockInfo = Status (*)(void*, int, unsigned*);
using Reasons = Status (*)(void*, unsigned long long*);
using Temperature = Status (*)(void*, int, unsigned*);
using Power = Status (*)(void*, unsigned*);
using EccErrors = Status (*)(void*, int, int, unsigned long long*);
using Processes = Status (*)(void*, unsigned*, ProcessInfo*);

template <typename Function>
Function found(const SharedLibrary& library, const char* name) {
    return reinterpret_cast<Function>(library.find(name));
}

// The first of two names that the library has: the newer one comes first.
template <typename Function>
Function found(const SharedLibrary& library, const char* name, const char* older) {
    const auto newer = found<Function>(library, name);
    return newer != nullptr ? newer : found<Function>(library, older);
}

}  // namespace

template <typename Function>
Function Nvml::function(const char* name) const {
    const auto address = found<Function>(library_, name);
    if (address == nullptr) throw Error(ExitCode::invalid, library_.path() + " has no " + name + "; update the driver");
    return address;
}

Nvml::Nvml(const std::string& library, const std::string& uuid) : library_(library) {
    const auto check = [&](Status status, const std::string& doing) {
        if (status == success) return;
        const auto describe = found<ErrorString>(library_, "nvmlErrorString");
        throw Error(ExitCode::invalid, library_.path() + ": " + doing +
                                           " failed: " + (describe != nullptr ? describe(status) : "status " + std::to_string(status)));
    };
    check(function<Init>("nvmlInit_v2")(), "nvmlInit_v2");
    check(function<HandleByUuid>("nvmlDeviceGetHandleByUUID")(uuid.c_str(), &device_), "nvmlDeviceGetHandleByUUID of " + uuid);
}

std::map<std::string, double> Nvml::read(std::int64_t worker_pid) const {
    std::map<std::string, double> values;
    // Calls get(out) and keeps what it wrote, times `scale`, if it succeeded.
    const auto keep = [&values](const char* name, auto out, double scale, auto get) {
        if (get(&out) == success) values[name] = static_cast<double>(out) * scale;
    };
    if (const auto get = found<ClockInfo>(library_, "nvmlDeviceGetClockInfo")) {
        keep("sm_mhz", 0U, 1.0, [&](unsigned* out) { return get(device_, clock_sm, out); });
        keep("memory_mhz", 0U, 1.0, [&](unsigned* out) { return get(device_, clock_memory, out); });
    }
    if (const auto get = found<Reasons>(library_, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")) {
        keep("throttle_reasons", 0ULL, 1.0, [&](unsigned long long* out) { return get(device_, out); });
    }
    if (const auto get = found<Temperature>(library_, "nvmlDeviceGetTemperature")) {
        keep("temperature_c", 0U, 1.0, [&](unsigned* out) { return get(device_, temperature_gpu, out); });
    }
    if (const auto get = found<Power>(library_, "nvmlDeviceGetPowerUsage")) {
        keep("power_w", 0U, 0.001, [&](unsigned* out) { return get(device_, out); });  // told in mW
    }
    if (const auto get = found<EccErrors>(library_, "nvmlDeviceGetTotalEccErrors")) {
        keep("ecc_corrected", 0ULL, 1.0, [&](unsigned long long* out) { return get(device_, memory_error_corrected, volatile_ecc, out); });
        keep("ecc_uncorrected", 0ULL, 1.0,
             [&](unsigned long long* out) { return get(device_, memory_error_uncorrected, volatile_ecc, out); });
    }
    read_processes(worker_pid, values);
    return values;
}

void Nvml::read_processes(std::int64_t worker_pid, std::map<std::string, double>& values) const {
    const auto get = found<Processes>(library_, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2");
    if (get == nullptr) return;
    std::vector<ProcessInfo> running(64);
    unsigned count = static_cast<unsigned>(running.size());
    Status status = get(device_, &count, running.data());
    if (status == insufficient_size && count < 100'000) {
        running.resize(count + 16U);  // a few more may have started meanwhile
        count = static_cast<unsigned>(running.size());
        status = get(device_, &count, running.data());
    }
    if (status != success || count > running.size()) return;
    running.resize(count);
    values["processes"] = count;
    // The worker has a context whenever it is asked for, so a list without anybody hides processes, and one without its number shows it
    // under another number: the container's processes are numbered anew.
    if (count == 0) return;
    values["other_processes"] = count - 1;
    bool worker_seen = false;
    for (const ProcessInfo& one : running) worker_seen = worker_seen || static_cast<std::int64_t>(one.pid) == worker_pid;
    if (!worker_seen) return;
    constexpr int named = 8;  // enough to find out who it is
    int index = 0;
    for (const ProcessInfo& one : running) {
        if (static_cast<std::int64_t>(one.pid) == worker_pid || index == named) continue;
        values["other_pid." + std::to_string(index++)] = one.pid;
    }
}

}  // namespace kestrel::platform
