#include "engine/cuda/capabilities.hpp"

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

kestrel_status captured(kestrel_engine* engine, void** graph) {
    return guarded([&] {
        if (engine == nullptr || graph == nullptr) bad_argument("engine or graph is null");
        *graph = static_cast<CudaBackend&>(engine->backend()).captured();
    });
}

constexpr kestrel_allocate allocate_table{sizeof(kestrel_allocate), allocate, release};
constexpr kestrel_graph graph_table{sizeof(kestrel_graph), captured};

}  // namespace

const void* own_capability(std::string_view name) {
    if (name == KESTREL_CAP_ALLOCATE) return &allocate_table;
    if (name == KESTREL_CAP_GRAPH) return &graph_table;
    return nullptr;
}

}  // namespace kestrel::cuda
