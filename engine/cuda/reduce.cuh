// Sums over a warp and over a block. Every thread of the warp, or of the block, must take part, in uniform control flow.
#pragma once

namespace kestrel::cuda {

inline constexpr unsigned warp_lanes = 32;
inline constexpr unsigned whole_warp = 0xFFFFFFFFU;
inline constexpr unsigned most_warps = 32;  // of a block

// Five-step shuffle-down tree; the total is lane 0's, other lanes hold partial sums.
__device__ inline float warp_sum(float value) {
    for (unsigned step = warp_lanes / 2; step > 0; step /= 2) value += __shfl_down_sync(whole_warp, value, step);
    return value;
}

// The total, in every thread. The block is whole warps. May be called again at once.
__device__ inline float block_sum(float value) {
    __shared__ float partial[most_warps];
    const unsigned warp = threadIdx.x / warp_lanes;
    value = warp_sum(value);
    __syncthreads();  // nobody reads the previous sum any more
    if (threadIdx.x % warp_lanes == 0) partial[warp] = value;
    __syncthreads();
    float total = 0.0F;
    for (unsigned w = 0; w < blockDim.x / warp_lanes; ++w) total += partial[w];
    return total;
}

// Likewise the largest value; not-a-number is ignored.
__device__ inline float block_max(float value) {
    __shared__ float partial[most_warps];
    for (unsigned step = warp_lanes / 2; step > 0; step /= 2) value = fmaxf(value, __shfl_down_sync(whole_warp, value, step));
    __syncthreads();
    if (threadIdx.x % warp_lanes == 0) partial[threadIdx.x / warp_lanes] = value;
    __syncthreads();
    float largest = partial[0];
    for (unsigned w = 1; w < blockDim.x / warp_lanes; ++w) largest = fmaxf(largest, partial[w]);
    return largest;
}

__device__ inline float sigmoid(float x) {
    return 1.0F / (1.0F + expf(-x));
}
__device__ inline float silu(float x) {
    return x / (1.0F + expf(-x));
}

}  // namespace kestrel::cuda
