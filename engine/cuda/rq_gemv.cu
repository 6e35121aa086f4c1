// Matrix times vector with f32 activations, weights as stored. Fused multiply-adds are written where they are meant.
#include "engine/cuda/launch.hpp"

#include <array>

#include "engine/cuda/check.hpp"
#include "engine/cuda/kernel_launch.cuh"
#include "engine/cuda/q4_tiles.hpp"
#include "engine/cuda/reduce.cuh"
#include "engine/cuda/rq_decode.cuh"
#include "engine/cuda/rq_gemv.hpp"

namespace kestrel::cuda {

constexpr unsigned gemv_warps = 4;
constexpr unsigned gemv_threads = gemv_warps * warp_lanes;

// q4_0: a warp sums four rows, so that activations in registers serve four times. A lane takes one block (32 weights, 16 bytes) of each
// row; x passes through shared memory, a tile of 32 blocks at a time.
constexpr unsigned q4_rows_per_warp = 4;
constexpr unsigned q4_rows_per_block = gemv_warps * q4_rows_per_warp;
constexpr unsigned q4_tile_blocks = warp_lanes;
// Floats from one block of x to the next: 16 bytes more than the block, so that neighbouring lanes read different banks.
constexpr unsigned q4_x_stride = 36;

// 2^23 with a nibble left in place at bit `Bit` of the mantissa, less 2^23 and the offset of 8: (n - 8) 2^Bit, exactly.
template <unsigned Bit>
__device__ inline float q4_level(unsigned word, unsigned magic) {
    unsigned bits;
    constexpr unsigned mask = 0xFU << Bit;
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(bits) : "r"(word), "n"(mask), "r"(magic));  // (word & mask) | magic
    return __uint_as_float(bits) - (8388608.0F + static_cast<float>(8U << Bit));
}

// Eight weights of one word: bytes 0..3 hold elements 0..3 (low nibbles, `low`) and 16..19 (high, `high`). x is scaled by 2^-Bit.
__device__ inline float q4_word(unsigned word, float4 low, float4 high, unsigned magic, float sum) {
    sum = fmaf(q4_level<0>(word, magic), low.x, sum);
    sum = fmaf(q4_level<4>(word, magic), high.x, sum);
    sum = fmaf(q4_level<8>(word, magic), low.y, sum);
    sum = fmaf(q4_level<12>(word, magic), high.y, sum);
    const unsigned upper = word >> 16U;
    sum = fmaf(q4_level<0>(upper, magic), low.z, sum);
    sum = fmaf(q4_level<4>(upper, magic), high.z, sum);
    sum = fmaf(q4_level<8>(upper, magic), low.w, sum);
    return fmaf(q4_level<12>(upper, magic), high.w, sum);
}

// A tile of x into shared memory, each element times the power of two that undoes its nibble's place.
__device__ inline void q4_stage_x(const float4* x, unsigned first_quad, unsigned quads, float* tile) {
    for (unsigned i = threadIdx.x; i < q4_tile_blocks * 8; i += gemv_threads) {
        if (first_quad + i >= quads) break;
        const float even = i % 8 < 4 ? 1.0F : 0x1p-4F;
        const float odd = even * 0x1p-8F;
        const float4 v = x[first_quad + i];
        *reinterpret_cast<float4*>(tile + i / 8 * q4_x_stride + i % 8 * 4) = make_float4(v.x * even, v.y * odd, v.z * even, v.w * odd);
    }
}

// Blocks of 128 threads, 16 rows each.
__global__ void __launch_bounds__(gemv_threads) k_rq_q4_gemv_f32act(const uint4* nibbles, const __half* scales, const float4* x,
                                                                    unsigned rows, unsigned row_blocks, float* y, bool add) {
    __shared__ __align__(16) float tile[q4_tile_blocks * q4_x_stride];
    const unsigned lane = threadIdx.x % warp_lanes;
    const unsigned first = (blockIdx.x * gemv_warps + threadIdx.x / warp_lanes) * q4_rows_per_warp;
    const unsigned magic = 0x4B000000U;  // 2^23
    wait_for_previous();
    float total[q4_rows_per_warp] = {};
    for (unsigned start = 0; start < row_blocks; start += q4_tile_blocks) {
        const unsigned block = start + lane;
        const bool mine = block < row_blocks;
        uint4 packed[q4_rows_per_warp] = {};
        float d[q4_rows_per_warp] = {};
#pragma unroll
        for (unsigned r = 0; r < q4_rows_per_warp; ++r) {
            // Surplus rows of the last warp read the last row again; only their store is left out.
            const std::size_t at = std::size_t{min(first + r, rows - 1)} * row_blocks + block;
            if (mine) packed[r] = nibbles[at];
            if (mine) d[r] = __half2float(scales[at]);
        }
        __syncthreads();  // the previous tile is used up
        q4_stage_x(x, start * 8, row_blocks * 8, tile);
        __syncthreads();
        if (!mine) continue;
        const float4* low = reinterpret_cast<const float4*>(tile + lane * q4_x_stride);
        const float4* high = low + 4;
        float sum[q4_rows_per_warp] = {};
#pragma unroll
        for (unsigned w = 0; w < 4; ++w) {
            const float4 x_low = low[w];
            const float4 x_high = high[w];
#pragma unroll
            for (unsigned r = 0; r < q4_rows_per_warp; ++r) {
                const unsigned word = w == 0 ? packed[r].x : w == 1 ? packed[r].y : w == 2 ? packed[r].z : packed[r].w;
                sum[r] = q4_word(word, x_low, x_high, magic, sum[r]);
            }
        }
#pragma unroll
        for (unsigned r = 0; r < q4_rows_per_warp; ++r) total[r] = fmaf(d[r], sum[r], total[r]);
    }
#pragma unroll
    for (unsigned r = 0; r < q4_rows_per_warp; ++r) {
        const float sum = warp_sum(total[r]);
        if (lane == 0 && first + r < rows) y[first + r] = add ? y[first + r] + sum : sum;
    }
}

// Every other type: a warp per row, eight elements per lane at a time, or one where rows are not whole eights (scalar types only).
template <TensorType Type>
__global__ void __launch_bounds__(gemv_threads)
    k_rq_gemv_f32act(Stored m, const float* x, unsigned rows, unsigned cols, float* y, bool add) {
    wait_for_previous();
    const unsigned lane = threadIdx.x % warp_lanes;
    const unsigned row = blockIdx.x * gemv_warps + threadIdx.x / warp_lanes;
    if (row >= rows) return;  // the last block's surplus warps
    const std::size_t start = std::size_t{row} * cols;
    float sum = 0.0F;
    if (cols % 8 == 0) {
        for (unsigned c = lane * 8; c < cols; c += warp_lanes * 8) {
            float w[8];
            decode_eight<Type>(m, start + c, w);
            const float4 a = *reinterpret_cast<const float4*>(x + c);
            const float4 b = *reinterpret_cast<const float4*>(x + c + 4);
            const float xs[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
            for (unsigned i = 0; i < 8; ++i) sum = fmaf(w[i], xs[i], sum);
        }
    } else if constexpr (Type == TensorType::f32 || Type == TensorType::f16 || Type == TensorType::bf16) {
        for (unsigned c = lane; c < cols; c += warp_lanes) sum = fmaf(decode_one<Type>(m.data, start + c), x[c], sum);
    }
    sum = warp_sum(sum);
    if (lane == 0) y[row] = add ? y[row] + sum : sum;
}

// A row of the embedding in tiles: eight columns per thread.
__global__ void k_embed_tiles(const unsigned* nibbles, const __half* scales, const Control* control, unsigned row_tiles, unsigned cols,
                              float* out) {
    wait_for_previous();
    const unsigned col = 8 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (col >= cols) return;  // the last block's surplus threads
    const auto row = static_cast<unsigned>(control->token);
    const std::size_t tile = tile_number(row / tile_rows, col / tile_cols, row_tiles);
    const float d = __half2float(scales[tile * (tile_scale_bytes / 2) + scale_place(row % tile_rows, col % tile_cols / 32)]);
    for (unsigned i = 0; i < 8; ++i) {
        const NibblePlace place = nibble_place(row % tile_rows, (col + i) % tile_cols);
        const unsigned word = nibbles[tile * (tile_nibble_bytes / 4) + place.lane * 4 + place.word];
        const auto n = static_cast<float>(__funnelshift_r(word, word, place.bit) & 0xFU);
        out[col + i] = d * (n - 8.0F) + 0.0F;  // dequantise() has no negative zeros either
    }
}

// A row of the embedding, any type.
template <TensorType Type>
__global__ void k_embed(Stored m, const Control* control, unsigned cols, float* out) {
    wait_for_previous();
    const std::size_t start = static_cast<std::size_t>(control->token) * cols;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (cols % 8 == 0) {
        if (i < cols / 8) decode_eight<Type>(m, start + 8 * i, out + 8 * i);
    } else if constexpr (Type == TensorType::f32 || Type == TensorType::f16 || Type == TensorType::bf16) {
        for (unsigned c = 8 * i; c < 8 * i + 8 && c < cols; ++c) out[c] = decode_one<Type>(m.data, start + c);
    }
}

inline bool aligned_16(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

inline void check_matrix(const Matrix& m, unsigned block_elements) {
    require(m.rows > 0 && m.rows < 0x40000000 && m.cols > 0 && m.cols < 0x40000000, "matrix: 1 to 2^30 - 1 rows and columns");
    require(m.cols % block_elements == 0, "matrix: rows are whole blocks of the type");
    require(aligned_16(m.data), "matrix: aligned to 16 bytes");
}

template <TensorType Type>
void launch_gemv_as(const Matrix& m, const float* x, float* y, Store store, const Queue& queue) {
    launch("k_rq_gemv_f32act", k_rq_gemv_f32act<Type>, {blocks_for(m.rows, gemv_warps), gemv_threads}, queue,
           Stored{m.data, m.rows * m.cols}, x, m.rows, m.cols, y, store == Store::add);
}

inline void launch_q4_gemv(const Matrix& m, const float* x, float* y, Store store, const Queue& queue) {
    const std::size_t row_blocks = m.cols / 32;
    launch("k_rq_q4_gemv_f32act", k_rq_q4_gemv_f32act, {blocks_for(m.rows, q4_rows_per_block), gemv_threads}, queue,
           reinterpret_cast<const uint4*>(m.data), reinterpret_cast<const __half*>(m.data + m.rows * row_blocks * 16),
           reinterpret_cast<const float4*>(x), m.rows, row_blocks, y, store == Store::add);
}

inline unsigned block_elements_of(TensorType type) {
    if (type == TensorType::q6_k) return 256;
    return type == TensorType::q4_0 || type == TensorType::q4_1 || type == TensorType::q8_0 ? 32 : 1;
}

void launch_gemv(const Matrix& m, const Activations& a, float* y, Store store, const Queue& queue) {
    const float* x = a.values;
    check_matrix(m, block_elements_of(m.type));
    require(aligned_16(x), "gemv: x aligned to 16 bytes");
    if (m.in_tiles()) {
        if (m.type == TensorType::q6_k) return launch_q6_gemv_tiles(m, a, y, store, queue);
        const Product one{m, y};
        return launch_q4_gemv_tiles({&one, 1}, a, store, queue);
    }
    switch (m.type) {
        case TensorType::f32:
            return launch_gemv_as<TensorType::f32>(m, x, y, store, queue);
        case TensorType::f16:
            return launch_gemv_as<TensorType::f16>(m, x, y, store, queue);
        case TensorType::bf16:
            return launch_gemv_as<TensorType::bf16>(m, x, y, store, queue);
        case TensorType::q4_0:
            return launch_q4_gemv(m, x, y, store, queue);
        case TensorType::q4_1:
            return launch_gemv_as<TensorType::q4_1>(m, x, y, store, queue);
        case TensorType::q8_0:
            return launch_gemv_as<TensorType::q8_0>(m, x, y, store, queue);
        case TensorType::q6_k:
            return launch_gemv_as<TensorType::q6_k>(m, x, y, store, queue);
    }
    require(false, "gemv: a known type");
}

void launch_gemvs(std::span<const Product> products, const Activations& x, Store store, const Queue& queue) {
    std::array<Product, most_products> tiled{};
    std::size_t count = 0;
    const auto launch_tiled = [&] {
        if (count > 0) launch_q4_gemv_tiles(std::span(tiled).first(count), x, store, queue);
        count = 0;
    };
    for (const Product& product : products) {
        check_matrix(product.m, block_elements_of(product.m.type));
        if (!product.m.in_tiles() || product.m.type != TensorType::q4_0) {
            launch_gemv(product.m, x, product.y, store, queue);
            continue;
        }
        if (count == most_products || (count > 0 && product.m.cols != tiled[0].m.cols)) launch_tiled();
        tiled[count++] = product;
    }
    launch_tiled();
}

template <TensorType Type>
void launch_embed_as(const Matrix& m, const Control* control, float* hidden, const Queue& queue) {
    constexpr unsigned threads = 128;  // eight elements each
    launch("k_embed", k_embed<Type>, {blocks_for(m.cols, 8 * threads), threads}, queue, Stored{m.data, m.rows * m.cols}, control, m.cols,
           hidden);
}

inline void launch_embed_tiles(const Matrix& m, const Control* control, float* hidden, const Queue& queue) {
    constexpr unsigned threads = 64;
    launch("k_embed_tiles", k_embed_tiles, {blocks_for(m.cols, 8 * threads), threads}, queue, reinterpret_cast<const unsigned*>(m.data),
           reinterpret_cast<const __half*>(m.data + m.rows * m.cols / 2), control, m.rows / tile_rows, m.cols, hidden);
}

void launch_embed(const Matrix& m, const Control* control, float* hidden, const Queue& queue) {
    check_matrix(m, block_elements_of(m.type));
    if (m.in_tiles() && m.type == TensorType::q6_k) return launch_q6_embed_tiles(m, control, hidden, queue);
    if (m.in_tiles()) return launch_embed_tiles(m, control, hidden, queue);
    switch (m.type) {
        case TensorType::f32:
            return launch_embed_as<TensorType::f32>(m, control, hidden, queue);
        case TensorType::f16:
            return launch_embed_as<TensorType::f16>(m, control, hidden, queue);
        case TensorType::bf16:
            return launch_embed_as<TensorType::bf16>(m, control, hidden, queue);
        case TensorType::q4_0:
            return launch_embed_as<TensorType::q4_0>(m, control, hidden, queue);
        case TensorType::q4_1:
            return launch_embed_as<TensorType::q4_1>(m, control, hidden, queue);
        case TensorType::q8_0:
            return launch_embed_as<TensorType::q8_0>(m, control, hidden, queue);
        case TensorType::q6_k:
            return launch_embed_as<TensorType::q6_k>(m, control, hidden, queue);
    }
    require(false, "embed: a known type");
}

}  // namespace kestrel::cuda
