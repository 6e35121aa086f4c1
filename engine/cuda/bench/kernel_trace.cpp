#include <cuda.h>
#include <cupti_activity.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "engine/cuda/bench/bench.hpp"

namespace kestrel::cuda::bench {
namespace {

// The tracing library is the toolkit's, not the driver's: loaded at run time, so that everything else works where it is not installed.
struct Tracing {
    decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
    decltype(&cuptiActivityEnable) enable = nullptr;
    decltype(&cuptiActivityDisable) disable = nullptr;
    decltype(&cuptiActivityFlushAll) flush = nullptr;
    decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
};

constexpr std::size_t buffer_bytes = std::size_t{8} << 20U;

Tracing tracing;
std::mutex records_mutex;
std::map<std::string, KernelTime> records;

std::string plain_name(const char* mangled) {
    int status = -1;
    char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
    std::string name = status == 0 ? text : mangled;
    std::free(text);
    name = name.substr(0, name.find('('));
    if (const auto space = name.find(' '); space != std::string::npos && name.find('<') > space) name = name.substr(space + 1);
    if (const auto scope = name.substr(0, name.find('<')).rfind("::"); scope != std::string::npos) name = name.substr(scope + 2);
    return name;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
    *size = *buffer == nullptr ? 0 : buffer_bytes;
    *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer, std::size_t /*size*/, std::size_t valid) {
    const std::lock_guard lock(records_mutex);
    CUpti_Activity* record = nullptr;
    while (tracing.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
        const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        KernelTime& total = records[plain_name(kernel->name)];
        ++total.launches;
        total.us += static_cast<double>(kernel->end - kernel->start) / 1e3;
        total.registers = kernel->registersPerThread;
    }
    std::free(buffer);
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

bool load(std::string& problem) {
    void* library = nullptr;
    for (const char* name :
         {"libcupti.so.13", "libcupti.so", "/usr/local/cuda/lib64/libcupti.so", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"}) {
        if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) != nullptr) break;
    }
    if (library == nullptr) {
        problem = std::string("kernels are not traced: ") + dlerror() + "; put the toolkit's libcupti into LD_LIBRARY_PATH";
        return false;
    }
    if (!find(library, "cuptiActivityRegisterCallbacks", tracing.register_callbacks) ||
        !find(library, "cuptiActivityEnable", tracing.enable) || !find(library, "cuptiActivityDisable", tracing.disable) ||
        !find(library, "cuptiActivityFlushAll", tracing.flush) || !find(library, "cuptiActivityGetNextRecord", tracing.next_record)) {
        problem = "kernels are not traced: this libcupti lacks the activity interface";
        return false;
    }
    return true;
}

}  // namespace

std::map<std::string, KernelTime> trace_kernels(const std::function<void()>& work, std::string& problem) {
    if (tracing.enable == nullptr && !load(problem)) return {};
    records.clear();
    if (tracing.register_callbacks(give_buffer, take_buffer) != CUPTI_SUCCESS ||
        tracing.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) {
        problem = "kernels are not traced: the driver refuses tracing";
        return {};
    }
    work();
    (void)tracing.flush(1);  // records of kernels that have ended, whether or not their buffer is full
    (void)tracing.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    const std::lock_guard lock(records_mutex);
    return records;
}

}  // namespace kestrel::cuda::bench
