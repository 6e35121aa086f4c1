// The CUDA engine behind the seam.
#include "engine/backend.hpp"

#include <string>

#include "engine/cuda/arrangement.hpp"
#include "engine/cuda/capabilities.hpp"
#include "engine/cuda/check.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/operators.hpp"
#include "engine/cuda/workspace.hpp"
#include "engine/error.hpp"

namespace kestrel::cuda {
namespace {

// In the order of GdnVariant, LaunchMode, Overlap and Fusion.
constexpr const char* gdn_delta_values[] = {"reg", "ref"};
constexpr const char* launch_values[] = {"stream", "graph"};
constexpr const char* overlap_values[] = {"off", "on"};
constexpr const char* fusion_values[] = {"on", "off"};

constexpr SwitchDescription switches[] = {
    {"VLLM_CUDA_GDN_DELTA", gdn_delta_values,
     "how the recurrent state is updated: reg holds a column in registers (k_gdn_delta_reg), ref re-reads memory (k_gdn_delta)"},
    {"KESTREL_LAUNCH", launch_values, "how a token's kernels start: one by one into a stream, or as one replay of a captured graph"},
    {"KESTREL_OVERLAP", overlap_values, "whether a kernel may begin while the one before it ends (devices of sm_90 and later)"},
    {"KESTREL_FUSION", fusion_values, "whether operations that one kernel can do take one launch, or one each; the same bits"},
};

std::uint64_t workspace_bytes(const ModelDims& dims, std::uint32_t max_positions) {
    return WorkspaceLayout(dims, max_positions).bytes;
}

std::unique_ptr<Backend> open(const Opening& opening) {
    return std::make_unique<CudaBackend>(opening, static_cast<GdnVariant>(opening.switches.at(0)),
                                         static_cast<LaunchMode>(opening.switches.at(1)), static_cast<Overlap>(opening.switches.at(2)),
                                         static_cast<Fusion>(opening.switches.at(3)));
}

void release_device(void* memory) {
    (void)cudaFree(memory);
}

}  // namespace

const char* CudaBackend::effective_switch(std::size_t index) const {
    if (index == 0) return gdn_delta_values[static_cast<std::size_t>(decoder_.gdn_variant())];
    if (index == 1) return launch_values[static_cast<std::size_t>(decoder_.launch_mode())];
    if (index == 2) return overlap_values[static_cast<std::size_t>(decoder_.overlap())];
    return fusion_values[static_cast<std::size_t>(decoder_.fusion())];
}

MemoryBlock allocate_device(std::uint64_t bytes, const std::string& purpose) {
    std::size_t available = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&available, &total), "asking for the device's free memory");
    void* memory = nullptr;
    const cudaError_t status = bytes <= total ? cudaMalloc(&memory, bytes) : cudaErrorMemoryAllocation;
    if (status == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();  // or the next launch would report it again
        fail(KESTREL_OUT_OF_MEMORY, purpose + ": needs " + std::to_string(bytes) + " bytes of device memory, " + std::to_string(available) +
                                        " are available; use a smaller model, fewer positions or a larger device");
    }
    check(status, "allocating device memory");
    return MemoryBlock::own(memory, release_device);
}

namespace {

constexpr BackendLibrary library{.name = "kestrel_cuda",
                                 .switches = switches,
                                 .memory_kind = KESTREL_MEMORY_DEVICE,
                                 .alignment = device_alignment,
                                 .allocate = allocate_device,
                                 .arrangement = &device_arrangement,
                                 .workspace_bytes = workspace_bytes,
                                 .state_element_bytes = sizeof(float),
                                 .open = open,
                                 .operators = &device_operators,
                                 .capability = own_capability};

}  // namespace
}  // namespace kestrel::cuda

const kestrel::BackendLibrary& kestrel::backend_library() {
    return cuda::library;
}
