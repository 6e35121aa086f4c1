// What products of matrices in tiles (q4_tiles.hpp, q6_tiles.hpp) with a split vector (split.hpp) share.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "engine/cuda/kernel_launch.cuh"
#include "engine/cuda/q4_tiles.hpp"
#include "engine/cuda/reduce.cuh"
#include "engine/cuda/split.cuh"

namespace kestrel::cuda {

// Two integers as bfloat16, less `offset`: from their bits under the exponent where one unit counts one. Exact.
__device__ inline unsigned centred(unsigned bits, float offset) {
    __nv_bfloat162 value;
    memcpy(&value, &bits, sizeof value);
    value = __hsub2(value, __floats2bfloat162_rn(offset, offset));
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// d = a b + d: rows of 16 weights times the parts of 16 activations.
__device__ inline void mma_bf16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Weights are read once: they would only push the vector out of the caches. Volatile, so that they stay before the wait they are written
// before.
__device__ inline uint4 stream_load(const uint4* at) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
    return v;
}
__device__ inline uint2 stream_load(const uint2* at) {
    uint2 v;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(at));
    return v;
}
__device__ inline unsigned stream_load(const unsigned* at) {
    unsigned v;
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(at));
    return v;
}

__device__ inline float2 floats_of(unsigned halves) {
    __half2 value;
    memcpy(&value, &halves, sizeof value);
    return __half22float2(value);
}

// Warps of a block: each takes its own of eight tiles beside each other, then of the next eight.
inline constexpr unsigned tiles_warps = group_tiles;
inline constexpr unsigned tiles_threads = tiles_warps * warp_lanes;

// A warp's share of a row of tiles: `count` tiles, the first of them `first` in the order of tile_number, each next one `step` later; and
// the parts of the vector that this lane multiplies the first one by, each next one's `parts_step` later.
struct TileShare {
    unsigned count;
    std::size_t first;
    unsigned step;
    unsigned lane;
    const uint4* parts;
    static constexpr unsigned parts_step = tiles_warps * split_words / 4;
};

__device__ inline TileShare tile_share(unsigned row_tile, unsigned row_tiles, unsigned col_tiles, const uint4* parts) {
    const unsigned lane = threadIdx.x % warp_lanes;
    const unsigned warp = threadIdx.x / warp_lanes;
    // Lanes whose column holds no part read another's, for the banks' sake: what they multiply is never used.
    const unsigned g = lane / 4;
    const unsigned part = g < split_parts ? g : g % 2;
    return {col_tiles / group_tiles, tile_number(row_tile, warp, row_tiles), group_tiles * row_tiles, lane,
            parts + std::size_t{warp} * (split_words / 4) + part * 4 + lane % 4};
}

// The sums of a row of tiles over all warps, in threads 0 to 15. Every thread of the block takes part.
__device__ inline float row_sum(const float (&total)[4], float (&partial)[tiles_warps][tile_rows]) {
    // Columns 0 and 1 of the product are in lanes with t = 0, column 2 in those with t = 1.
    const float third_low = __shfl_down_sync(whole_warp, total[0], 1);
    const float third_high = __shfl_down_sync(whole_warp, total[2], 1);
    const unsigned lane = threadIdx.x % warp_lanes;
    if (lane % 4 == 0) {
        partial[threadIdx.x / warp_lanes][lane / 4] = total[0] + total[1] + third_low;
        partial[threadIdx.x / warp_lanes][lane / 4 + 8] = total[2] + total[3] + third_high;
    }
    __syncthreads();
    float sum = 0.0F;
    if (threadIdx.x < tile_rows) {
#pragma unroll
        for (unsigned w = 0; w < tiles_warps; ++w) sum += partial[w][threadIdx.x];
    }
    return sum;
}

}  // namespace kestrel::cuda
