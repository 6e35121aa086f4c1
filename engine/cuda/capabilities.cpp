#include "engine/cuda/capabilities.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/boundary.hpp"
#include "engine/cuda/check.hpp"
#include "engine/engine.hpp"
#include "engine/error.hpp"

namespace kestrel::cuda {
namespace {

// Host memory is page-locked, so that the device reads it directly.
kestrel_status allocate(kestrel_memory_kind kind, size_t bytes, void** out) {
    return guarded([&] {
        if (out == nullptr) bad_argument("out is null");
        *out = nullptr;
        if (bytes == 0) bad_argument("no bytes are asked for");
        if (kind == KESTREL_MEMORY_DEVICE) return check(cudaMalloc(out, bytes), "allocating device memory for the caller");
        if (kind == KESTREL_MEMORY_HOST) return check(cudaMallocHost(out, bytes), "allocating page-locked memory for the caller");
        fail(KESTREL_UNSUPPORTED, "no memory of kind " + std::to_string(static_cast<int>(kind)));
    });
}

void release(kestrel_memory_kind kind, void* memory) {
    (void)(kind == KESTREL_MEMORY_DEVICE ? cudaFree(memory) : cudaFreeHost(memory));
}

kestrel_status fill(kestrel_memory_kind kind, void* memory, int byte, size_t bytes) {
    return guarded([&] {
        if (memory == nullptr) bad_argument("memory is null");
        if (kind == KESTREL_MEMORY_HOST) {
            std::memset(memory, byte, bytes);
            return;
        }
        check(cudaMemset(memory, byte, bytes), "filling device memory");
        check(cudaDeviceSynchronize(), "filling device memory");
    });
}

// On the calling thread's own stream, so that threads that copy at the same time do not wait for each other.
kestrel_status copy(void* to, const void* from, size_t bytes, cudaMemcpyKind direction, const char* what) {
    return guarded([&] {
        if (to == nullptr || from == nullptr) bad_argument("memory is null");
        check(cudaMemcpyAsync(to, from, bytes, direction, cudaStreamPerThread), what);
        check(cudaStreamSynchronize(cudaStreamPerThread), what);
    });
}

kestrel_status copy_in(kestrel_memory_kind kind, void* memory, const void* host, size_t bytes) {
    return copy(memory, host, bytes, kind == KESTREL_MEMORY_DEVICE ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost,
                "copying to the device");
}

kestrel_status copy_out(kestrel_memory_kind kind, const void* memory, void* host, size_t bytes) {
    return copy(host, memory, bytes, kind == KESTREL_MEMORY_DEVICE ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost,
                "copying from the device");
}

kestrel_status device(char* out, size_t size) {
    return guarded([&] {
        if (out == nullptr || size == 0) bad_argument("no room for the device's name");
        cudaDeviceProp properties{};
        int index = 0;
        int driver = 0;
        check(cudaGetDevice(&index), "asking for the device");
        check(cudaGetDeviceProperties(&properties, index), "asking for the device's properties");
        check(cudaDriverGetVersion(&driver), "asking for the driver's version");
        std::string text = std::string("cuda: ") + properties.name + ", UUID ";
        for (const char byte : properties.uuid.bytes) {
            text += "0123456789abcdef"[(static_cast<unsigned char>(byte) >> 4) & 15];
            text += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
        }
        text += ", driver API " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
        const std::size_t bytes = std::min(text.size(), size - 1);
        std::memcpy(out, text.data(), bytes);
        out[bytes] = '\0';
    });
}

kestrel_status captured(kestrel_engine* engine, void** graph) {
    return guarded([&] {
        if (engine == nullptr || graph == nullptr) bad_argument("engine or graph is null");
        *graph = static_cast<CudaBackend&>(engine->backend()).captured();
    });
}

constexpr kestrel_allocate allocate_table{sizeof(kestrel_allocate), allocate, release, fill, device, copy_in, copy_out};
constexpr kestrel_graph graph_table{sizeof(kestrel_graph), captured};

}  // namespace

const void* own_capability(std::string_view name) {
    if (name == KESTREL_CAP_ALLOCATE) return &allocate_table;
    if (name == KESTREL_CAP_GRAPH) return &graph_table;
    return nullptr;
}

}  // namespace kestrel::cuda
