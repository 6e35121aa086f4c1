// q4_0 matrices in tiles (q4_tiles.hpp) times a vector that is split (split.hpp), on tensor cores, with the accuracy of f32 activations.
//
// Why tensor cores for one vector: unpacking is what a q4 product is bound by, and here four instructions make two weights (shift, three-
// input logic, subtract; no multiply-add per weight, which the tensor core does). Weights are exact integers in bfloat16, parts of x are
// exact, products and their sums are f32; a block's scale is applied in f32 to the sum over its 32 columns. Five of the eight columns that
// a tensor core multiplies are wasted; it is idle otherwise.
#pragma once

#include "engine/cuda/rq_gemv.hpp"
#include "engine/cuda/tile_products.cuh"

namespace kestrel::cuda {

// Matrices of one width below each other, each with a result of its own.
struct TiledProducts {
    const uint4* nibbles[most_products];
    const uint2* scales[most_products];
    float* y[most_products];
    unsigned end[most_products];  // rows of tiles up to and with this matrix
};

// Tiles that a warp has on their way, as the engine launches its kernels.
inline constexpr unsigned tiles_depth = 3;
inline constexpr unsigned gate_up_depth = 2;  // of two matrices each

// The weights of word `word`, less 8, as the A fragment of one step: (16 + n) - 24 in bfloat16, every step exact.
__device__ inline void q4_fragment(unsigned word, unsigned (&a)[4]) {
    constexpr unsigned mask = 0xFU << nibble_bit | 0xFU << (nibble_bit + 16);
    constexpr unsigned sixteen = 0x41804180U;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned turned = __funnelshift_r(word, word, 4 * i);
        unsigned bits;
        asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(bits) : "r"(turned), "n"(mask), "r"(sixteen));  // (turned & mask) | sixteen
        a[i] = centred(bits, 24.0F);
    }
}

// total += tile x; d[0], d[1]: this lane's scales of rows g and g + 8. b: both halves' parts.
__device__ inline void q4_tile(const uint4& words, const uint2& d, const uint4 (&b)[2], float (&total)[4]) {
    const float2 scale[2] = {floats_of(d.x), floats_of(d.y)};
    const unsigned word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
        float sum[4] = {};
        unsigned a[4];
        q4_fragment(word[2 * half], a);
        mma_bf16(sum, a, b[half].x, b[half].y);
        q4_fragment(word[2 * half + 1], a);
        mma_bf16(sum, a, b[half].z, b[half].w);
        const float low = half == 0 ? scale[0].x : scale[0].y;
        const float high = half == 0 ? scale[1].x : scale[1].y;
        total[0] = fmaf(low, sum[0], total[0]);
        total[1] = fmaf(low, sum[1], total[1]);
        total[2] = fmaf(high, sum[2], total[2]);
        total[3] = fmaf(high, sum[3], total[3]);
    }
}

// Tiles of one matrix on their way to a lane, in slots that are used in turns; `nibbles` and `scales` are at the next one to fetch.
template <unsigned Depth>
struct TileStream {
    const uint4* nibbles;
    const uint2* scales;
    unsigned step;
    uint4 words[Depth];
    uint2 d[Depth];

    __device__ TileStream(const uint4* matrix_nibbles, const uint2* matrix_scales, const TileShare& share)
        : nibbles(matrix_nibbles + share.first * tile_lanes + share.lane),
          scales(matrix_scales + share.first * 8 + share.lane / 4),
          step(share.step) {
#pragma unroll
        for (unsigned i = 0; i < Depth; ++i) {
            if (i < share.count) fetch(i);
        }
    }
    // The next tile, into a slot that is free.
    __device__ void fetch(unsigned slot) {
        words[slot] = stream_load(nibbles);
        d[slot] = stream_load(scales);
        nibbles += std::size_t{step} * tile_lanes;
        scales += std::size_t{step} * 8;
    }
};

// The vector's parts for tiles on their way, alongside TileStream. Loaded only when they are needed they cost 0.65 ms a token more on an
// H200 (STEPS.md): inferred, loads come back in the order in which they were made, so even a hit waits for weights that are needed much
// later.
template <unsigned Depth>
struct PartsStream {
    const uint4* parts;
    uint4 b[Depth][2];

    __device__ explicit PartsStream(const TileShare& share) : parts(share.parts) {
#pragma unroll
        for (unsigned i = 0; i < Depth; ++i) {
            if (i < share.count) fetch(i);
        }
    }
    __device__ void fetch(unsigned slot) {
        b[slot][0] = parts[0];
        b[slot][1] = parts[split_words / 8];
        parts += TileShare::parts_step;
    }
};

// total[m] += a warp's share of matrix m times x, for matrices that are read alongside each other. Waits for the kernel before, which makes
// x.
template <unsigned Depth, unsigned Matrices>
__device__ inline void add_tiles(const TileShare& share, TileStream<Depth> (&streams)[Matrices], float (&total)[Matrices][4]) {
    wait_for_previous();  // the weights are on their way already
    PartsStream<Depth> x(share);
    for (unsigned left = share.count; left > 0; left = left > Depth ? left - Depth : 0) {
#pragma unroll
        for (unsigned i = 0; i < Depth; ++i) {
            if (i >= left) break;
#pragma unroll
            for (unsigned m = 0; m < Matrices; ++m) q4_tile(streams[m].words[i], streams[m].d[i], x.b[i], total[m]);
            if (i + Depth >= left) continue;
#pragma unroll
            for (unsigned m = 0; m < Matrices; ++m) streams[m].fetch(i);
            x.fetch(i);
        }
    }
}

// A block per row of tiles, whose warps share the columns. The order of the sums depends on the shape alone.
template <unsigned Depth>
__global__ void __launch_bounds__(tiles_threads)
    k_q4_gemv_tiles(const __grid_constant__ TiledProducts m, const uint4* parts, unsigned col_tiles, bool add) {
    __shared__ float partial[tiles_warps][tile_rows];
    const unsigned which = (blockIdx.x >= m.end[0] ? 1U : 0U) + (blockIdx.x >= m.end[1] ? 1U : 0U);
    const unsigned before = which == 0 ? 0U : m.end[which - 1];
    const unsigned row_tile = blockIdx.x - before;
    const TileShare share = tile_share(row_tile, m.end[which] - before, col_tiles, parts);
    TileStream<Depth> streams[] = {TileStream<Depth>(m.nibbles[which], m.scales[which], share)};
    float total[1][4] = {};
    add_tiles<Depth, 1>(share, streams, total);
    const float sum = row_sum(total[0], partial);
    if (threadIdx.x < tile_rows) {
        float* y = m.y[which] + std::size_t{row_tile} * tile_rows + threadIdx.x;
        *y = add ? *y + sum : sum;
    }
}

// y = silu(gate x) (up x), and y split, in one go: bit for bit what k_q4_gemv_tiles and k_silu_mul give.
template <unsigned Depth>
__global__ void __launch_bounds__(tiles_threads)
    k_q4_gate_up_tiles(const __grid_constant__ TiledProducts m, const uint4* parts, unsigned col_tiles, __nv_bfloat16* y_parts) {
    __shared__ float partial[2][tiles_warps][tile_rows];
    const TileShare share = tile_share(blockIdx.x, gridDim.x, col_tiles, parts);
    TileStream<Depth> streams[] = {TileStream<Depth>(m.nibbles[0], m.scales[0], share),
                                   TileStream<Depth>(m.nibbles[1], m.scales[1], share)};
    float total[2][4] = {};
    add_tiles<Depth, 2>(share, streams, total);
    const float gate = row_sum(total[0], partial[0]);
    const float up = row_sum(total[1], partial[1]);
    if (threadIdx.x < tile_rows) {
        const unsigned row = blockIdx.x * tile_rows + threadIdx.x;
        const float y = silu(gate) * up;
        m.y[0][row] = y;
        store_split(y, row, y_parts);
    }
}

}  // namespace kestrel::cuda
