// A stand-in for NVIDIA's management library with one device. One define chooses how it behaves:
//   FAKE_NVML_good            tells values; has two processes, its reader's parent and number 4343
//   FAKE_NVML_crowded         the same, and 98 more processes
//   FAKE_NVML_failing         every question about the device fails
//   FAKE_NVML_no_device       knows no device
//   FAKE_NVML_no_init         cannot be initialised
//   FAKE_NVML_hangs_at_start  never returns from its initialisation
//   FAKE_NVML_hangs_later     never returns from the first question of the second reading
#include <unistd.h>

#include <cstring>

#ifdef FAKE_NVML_failing
constexpr int answer = 3;  // NVML_ERROR_NOT_SUPPORTED
#else
constexpr int answer = 0;
#endif

struct Process {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance;
    unsigned compute_instance;
};

namespace {

[[maybe_unused, noreturn]] void hang() {
    for (;;) ::pause();
}

#ifdef FAKE_NVML_crowded
constexpr unsigned process_count = 100;
#else
constexpr unsigned process_count = 2;
#endif

}  // namespace

extern "C" {

int nvmlInit_v2();
int nvmlInit_v2() {
#ifdef FAKE_NVML_hangs_at_start
    hang();
#elif defined(FAKE_NVML_no_init)
    return 9;  // NVML_ERROR_DRIVER_NOT_LOADED
#else
    return 0;
#endif
}

const char* nvmlErrorString(int status);
const char* nvmlErrorString(int status) {
    return status == 9 ? "Driver Not Loaded" : "Not Found";
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device);
int nvmlDeviceGetHandleByUUID([[maybe_unused]] const char* uuid, void** device) {
    static int handle = 0;
    *device = &handle;
#ifdef FAKE_NVML_no_device
    return 6;  // NVML_ERROR_NOT_FOUND
#else
    return std::strncmp(uuid, "GPU-", 4) == 0 ? 0 : 6;
#endif
}

int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz);
int nvmlDeviceGetClockInfo(void* /*device*/, int type, unsigned* mhz) {
#ifdef FAKE_NVML_hangs_later
    static int calls = 0;
    if (++calls > 2) hang();  // two clocks are asked for in a reading
#endif
    *mhz = type == 1 ? 1980 : 2619;
    return answer;
}

// Of the older name only: drivers before 535 lack the newer one.
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons);
int nvmlDeviceGetCurrentClocksThrottleReasons(void* /*device*/, unsigned long long* reasons) {
    *reasons = 0x5;
    return answer;
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius);
int nvmlDeviceGetTemperature(void* /*device*/, int sensor, unsigned* celsius) {
    *celsius = 45;
    return sensor == 0 ? answer : 2;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts);
int nvmlDeviceGetPowerUsage(void* /*device*/, unsigned* milliwatts) {
    *milliwatts = 305500;
    return answer;
}

int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors);
int nvmlDeviceGetTotalEccErrors(void* /*device*/, int type, int counter, unsigned long long* errors) {
    *errors = type == 0 ? 7 : 0;
    return counter == 0 ? answer : 2;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* processes);
int nvmlDeviceGetComputeRunningProcesses_v3(void* /*device*/, unsigned* count, Process* processes) {
    const bool fits = *count >= process_count;
    *count = process_count;
    if (answer != 0) return answer;
    if (!fits) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
    for (unsigned i = 0; i < process_count; ++i) processes[i] = {i == 0 ? static_cast<unsigned>(::getppid()) : 4342 + i, 0, 0, 0};
    return 0;
}

}  // extern "C"
