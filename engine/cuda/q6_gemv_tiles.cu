// q6_k matrices in tiles (q6_tiles.hpp) times a vector that is split, as q4_gemv_tiles.cuh does it for q4_0; here a scale counts for the 16
// columns of one step.
#include "engine/cuda/q6_tiles.hpp"
#include "engine/cuda/rq_gemv.hpp"
#include "engine/cuda/tile_products.cuh"

namespace kestrel::cuda {

struct SixPlanePointers {
    const uint4* low;
    const uint2* high;
    const uint2* scales;
    const unsigned* d;
};

// A lane's part of a tile.
struct SixTile {
    uint4 low;
    uint2 high;
    uint2 scales;  // four signed bytes of row g, four of row g + 8
    unsigned d;    // of row g and of row g + 8
};

__device__ inline SixTile six_tile_at(const SixPlanePointers& at, std::size_t tile, std::size_t d_group, unsigned lane) {
    return {stream_load(at.low + tile * tile_lanes + lane), stream_load(at.high + tile * tile_lanes + lane),
            stream_load(at.scales + tile * 8 + lane / 4), stream_load(at.d + d_group * 8 + lane / 4)};
}

// The weights of one step, less 32: 128 + n under the exponent of 128, then minus 160.
__device__ inline void six_fragment(unsigned low, unsigned high, unsigned odd_step, unsigned (&a)[4]) {
    constexpr unsigned low_mask = 0x000F000FU;
    constexpr unsigned high_mask = 0x00300030U;
    constexpr unsigned hundred_twenty_eight = 0x43004300U;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned four = low >> (4 * i);
        const unsigned two = __funnelshift_r(high, high, 2 * i + 8 * odd_step);
        unsigned bits;
        asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(bits) : "r"(four), "n"(low_mask), "r"(hundred_twenty_eight));
        asm("lop3.b32 %0, %1, %2, %0, 0xEA;" : "+r"(bits) : "r"(two), "n"(high_mask));
        a[i] = centred(bits, 160.0F);
    }
}

__device__ inline float signed_byte(unsigned word, unsigned i) {
    return static_cast<float>(static_cast<signed char>(word >> (8 * i)));
}

// total += tile x.
__device__ inline void add_six_tile(const SixTile& tile, const uint4 (&b)[2], float (&total)[4]) {
    const float2 d = floats_of(tile.d);
    const unsigned low[4] = {tile.low.x, tile.low.y, tile.low.z, tile.low.w};
#pragma unroll
    for (unsigned step = 0; step < 4; ++step) {
        float sum[4] = {};
        unsigned a[4];
        six_fragment(low[step], step < 2 ? tile.high.x : tile.high.y, step % 2, a);
        const uint4& parts = b[step / 2];
        mma_bf16(sum, a, step % 2 == 0 ? parts.x : parts.z, step % 2 == 0 ? parts.y : parts.w);
        const float first = d.x * signed_byte(tile.scales.x, step);  // exact: 11 and 8 bits
        const float second = d.y * signed_byte(tile.scales.y, step);
        total[0] = fmaf(first, sum[0], total[0]);
        total[1] = fmaf(first, sum[1], total[1]);
        total[2] = fmaf(second, sum[2], total[2]);
        total[3] = fmaf(second, sum[3], total[3]);
    }
}

inline constexpr unsigned six_depth = 2;

__global__ void __launch_bounds__(tiles_threads)
    k_q6_gemv_tiles(SixPlanePointers m, const uint4* parts, unsigned col_tiles, float* y, bool add) {
    __shared__ float partial[tiles_warps][tile_rows];
    const TileShare share = tile_share(blockIdx.x, gridDim.x, col_tiles, parts);
    const auto fetch = [&](unsigned k) {
        const std::size_t tile = share.first + std::size_t{k} * share.step;
        return six_tile_at(m, tile, tile / (six_group_cols / tile_cols), share.lane);
    };
    SixTile tiles[six_depth];
#pragma unroll
    for (unsigned i = 0; i < six_depth; ++i) {
        if (i < share.count) tiles[i] = fetch(i);
    }
    wait_for_previous();  // the weights are on their way already
    float total[4] = {};
    const uint4* b_at = share.parts;
    for (unsigned k = 0; k < share.count; k += six_depth) {
#pragma unroll
        for (unsigned i = 0; i < six_depth; ++i) {
            if (k + i >= share.count) break;
            const uint4 b[2] = {*b_at, *(b_at + split_words / 8)};
            b_at += TileShare::parts_step;
            add_six_tile(tiles[i], b, total);
            if (k + i + six_depth < share.count) tiles[i] = fetch(k + i + six_depth);
        }
    }
    const float sum = row_sum(total, partial);
    if (threadIdx.x < tile_rows) {
        float* to = y + std::size_t{blockIdx.x} * tile_rows + threadIdx.x;
        *to = add ? *to + sum : sum;
    }
}

// A row of the embedding: a thread per column.
__global__ void k_embed_six_tiles(SixPlanePointers m, const Control* control, unsigned row_tiles, unsigned cols, float* out) {
    wait_for_previous();
    const unsigned col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;  // the last block's surplus threads
    const auto token = static_cast<unsigned>(control->token);
    const unsigned row = token % tile_rows;
    const std::size_t tile = tile_number(token / tile_rows, col / tile_cols, row_tiles);
    const SixPlace at = six_place(row, col % tile_cols);
    const unsigned low = reinterpret_cast<const unsigned*>(m.low)[tile * (six_low_bytes / 4) + at.lane * 4 + at.low_word];
    const unsigned high = reinterpret_cast<const unsigned*>(m.high)[tile * (six_high_bytes / 4) + at.lane * 2 + at.high_word];
    const unsigned n = (low >> at.low_bit & 0xFU) | (__funnelshift_r(high, high, at.high_bit) & 3U) << 4U;
    const auto* scales = reinterpret_cast<const signed char*>(m.scales) + tile * six_scale_bytes;
    const auto* ds = reinterpret_cast<const __half*>(m.d) + tile / (six_group_cols / tile_cols) * (six_d_bytes / 2);
    const float d = __half2float(ds[six_d_place(row)]) * static_cast<float>(scales[six_scale_place(row, col % tile_cols / 16)]);
    out[col] = d * (static_cast<float>(n) - 32.0F);
}

inline SixPlanePointers six_planes(const Matrix& m) {
    const std::size_t tiles = m.rows / tile_rows * (m.cols / tile_cols);
    const std::byte* high = m.data + tiles * six_low_bytes;
    const std::byte* scales = high + tiles * six_high_bytes;
    return {reinterpret_cast<const uint4*>(m.data), reinterpret_cast<const uint2*>(high), reinterpret_cast<const uint2*>(scales),
            reinterpret_cast<const unsigned*>(scales + tiles * six_scale_bytes)};
}

void launch_q6_gemv_tiles(const Matrix& m, const Activations& x, float* y, Store store, const Queue& queue) {
    require(m.type == TensorType::q6_k && m.in_tiles(), "q6_gemv_tiles: a q6_k matrix of whole tiles");
    require(x.parts != nullptr, "q6_gemv_tiles: x is split");
    launch("k_q6_gemv_tiles", k_q6_gemv_tiles, {blocks_for(m.rows / tile_rows, 1), tiles_threads}, queue, six_planes(m),
           reinterpret_cast<const uint4*>(x.parts), m.cols / tile_cols, y, store == Store::add);
}

void launch_q6_embed_tiles(const Matrix& m, const Control* control, float* hidden, const Queue& queue) {
    constexpr unsigned threads = 128;
    launch("k_embed_six_tiles", k_embed_six_tiles, {blocks_for(m.cols, threads), threads}, queue, six_planes(m), control,
           m.rows / tile_rows, m.cols, hidden);
}

}  // namespace kestrel::cuda
