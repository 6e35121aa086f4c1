#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

__global__ void k_silu_mul(float* gate, const float* up, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) gate[i] = silu(gate[i]) * up[i];  // the last block has surplus threads
}

void launch_silu_mul(float* gate, const float* up, std::size_t n, cudaStream_t stream) {
    constexpr unsigned threads = 128;
    require(n <= 0x7FFFFFFF, "silu_mul: below 2^31 elements");
    k_silu_mul<<<blocks_for(n, threads), threads, 0, stream>>>(gate, up, static_cast<unsigned>(n));
    check_launch("k_silu_mul");
}

}  // namespace kestrel::cuda
