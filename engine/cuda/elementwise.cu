#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/kernel_launch.cuh"
#include "engine/cuda/reduce.cuh"
#include "engine/cuda/split.cuh"

namespace kestrel::cuda {

constexpr unsigned elementwise_threads = 128;

__global__ void k_silu_mul(float* gate, const float* up, unsigned n, __nv_bfloat16* parts) {
    wait_for_previous();
    const unsigned i = blockIdx.x * elementwise_threads + threadIdx.x;
    if (i >= n) return;  // the last block's surplus threads
    const float y = silu(gate[i]) * up[i];
    gate[i] = y;
    if (parts != nullptr) store_split(y, i, parts);
}

__global__ void k_split(const float* x, unsigned n, __nv_bfloat16* parts) {
    wait_for_previous();
    const unsigned i = blockIdx.x * elementwise_threads + threadIdx.x;
    if (i < n) store_split(x[i], i, parts);  // the last block has surplus threads
}

void launch_silu_mul(float* gate, const float* up, std::size_t n, float* parts, const Queue& queue) {
    require(n <= 0x7FFFFFFF && (parts == nullptr || can_split(n)), "silu_mul: below 2^31 elements, whole sixty-fours to be split");
    launch("k_silu_mul", k_silu_mul, {blocks_for(n, elementwise_threads), elementwise_threads}, queue, gate, up, n, parts_at(parts));
}

void launch_split(const float* x, std::size_t n, float* parts, const Queue& queue) {
    require(n <= 0x7FFFFFFF && can_split(n) && parts != nullptr, "split: whole sixty-fours of elements, below 2^31");
    launch("k_split", k_split, {blocks_for(n, elementwise_threads), elementwise_threads}, queue, x, n, parts_at(parts));
}

}  // namespace kestrel::cuda
