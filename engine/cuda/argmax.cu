#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/kernel_launch.cuh"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

struct Candidate {
    float value;
    unsigned index;
};

constexpr unsigned argmax_threads = 256;
constexpr unsigned argmax_per_block = 8 * argmax_threads;

__device__ inline Candidate better(Candidate a, Candidate b) {
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

// The block's best, in thread 0.
__device__ inline Candidate block_best(Candidate mine) {
    __shared__ Candidate partial[most_warps];
    for (unsigned step = warp_lanes / 2; step > 0; step /= 2) {
        mine = better(mine, {__shfl_down_sync(whole_warp, mine.value, step), __shfl_down_sync(whole_warp, mine.index, step)});
    }
    if (threadIdx.x % warp_lanes == 0) partial[threadIdx.x / warp_lanes] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned w = 1; w < blockDim.x / warp_lanes; ++w) mine = better(mine, partial[w]);
    }
    return mine;
}

// A block's part of the values. Every value but not-a-number and minus infinity beats the start; index 0 if there is none.
__global__ void k_argmax_part(const float* values, unsigned n, Candidate* best) {
    wait_for_previous();
    Candidate mine{-INFINITY, 0};
    const unsigned first = blockIdx.x * argmax_per_block;
    for (unsigned i = first + threadIdx.x; i < n && i - first < argmax_per_block; i += argmax_threads) mine = better(mine, {values[i], i});
    mine = block_best(mine);
    if (threadIdx.x == 0) best[blockIdx.x] = mine;
}

// One block.
__global__ void k_argmax(const Candidate* best, unsigned parts, Control* control) {
    wait_for_previous();
    Candidate mine{-INFINITY, 0};
    for (unsigned i = threadIdx.x; i < parts; i += argmax_threads) mine = better(mine, best[i]);
    mine = block_best(mine);
    if (threadIdx.x == 0) control->next = static_cast<int>(mine.index);
}

std::size_t argmax_scratch_bytes(std::size_t n) {
    return blocks_for(n, argmax_per_block) * sizeof(Candidate);
}

void launch_argmax(const float* values, std::size_t n, void* scratch, Control* control, const Queue& queue) {
    require(n < 0x40000000, "argmax: below 2^30 values");
    auto* best = static_cast<Candidate*>(scratch);
    const unsigned parts = blocks_for(n, argmax_per_block);
    launch("k_argmax_part", k_argmax_part, {parts, argmax_threads}, queue, values, n, best);
    launch("k_argmax", k_argmax, {1, argmax_threads}, queue, best, parts, control);
}

}  // namespace kestrel::cuda
