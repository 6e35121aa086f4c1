// Launching kernels so that one can begin while the one before it ends, and what kernels do about it.
//
// On devices that can (sm_90 and later), a launch with `overlap` may start as soon as every block of the kernel before it has gone past
// wait_for_previous() or ended (CUDA Programming Guide, "Programmatic Dependent Launch and Synchronization"). So
//   - every kernel calls wait_for_previous(), in all threads, before it reads what a kernel wrote or writes anything;
//   - before that it may read what is never written while decoding (weights), and what only kernels before the previous one wrote, for they
//     have ended: the previous one has itself gone past its wait.
// tests/cli/architecture.sh looks for the call in every kernel.
#pragma once

#include <cuda_runtime.h>

#include "engine/cuda/check.hpp"
#include "engine/cuda/launch.hpp"

namespace kestrel::cuda {

// Returns when the kernel launched before has ended and what it wrote can be seen; then the next one may begin.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

struct LaunchShape {
    unsigned blocks;  // from blocks_for
    unsigned threads;
    std::size_t shared_bytes = 0;
};

// Throws EngineError naming the kernel.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const LaunchShape& shape, const Queue& queue, Arguments&&... arguments) {
    cudaLaunchAttribute overlap{};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(shape.blocks);
    config.blockDim = dim3(shape.threads);
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = queue.stream;
    config.attrs = &overlap;
    config.numAttrs = queue.overlap ? 1 : 0;
    check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), name);
}

}  // namespace kestrel::cuda
