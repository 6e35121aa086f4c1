// A block's work on one chunk of positions (attention_chunks.hpp) for a tile of query heads that share keys and values.
#pragma once

#include "engine/attention_chunks.hpp"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

inline constexpr unsigned attend_warps = 8;
inline constexpr unsigned attend_threads = attend_warps * warp_lanes;
// Scores: eight lanes share a row of keys, so a warp reads four rows at a time, and each lane holds a piece of two rows.
inline constexpr unsigned row_lanes = 8;
inline constexpr unsigned rows_at_a_time = warp_lanes / row_lanes;
inline constexpr unsigned rows_per_lane = 2;
inline constexpr unsigned rows_per_warp = rows_at_a_time * rows_per_lane;
static_assert(attend_warps * rows_per_warp == attention_chunk);
inline constexpr unsigned keys_at_a_time = 4;  // accesses of each row under way at the same time
// Values: rows of which a thread has its columns under way at the same time.
inline constexpr unsigned values_at_a_time = 8;
// A lane of a row, and a warp of the block, writes for one head of the tile.
inline constexpr unsigned most_tile = 8;
static_assert(most_tile <= row_lanes && most_tile <= attend_warps);

// Width is 4, as one access, or 1.
template <unsigned Width>
__device__ inline void load_floats(const float* from, float (&to)[Width]) {
    if constexpr (Width == 4) {
        const float4 four = *reinterpret_cast<const float4*>(from);
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else {
        to[0] = *from;
    }
}
template <unsigned Width>
__device__ inline void store_floats(float* to, const float (&from)[Width]) {
    if constexpr (Width == 4) {
        *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
    } else {
        *to = from[0];
    }
}

// scores[Tile][attention_chunk] = scale q . key for the chunk's `live` positions. q[Tile][dim] is in shared memory.
template <unsigned Width, unsigned Tile>
__device__ inline void chunk_scores(const float* q, const float* keys, unsigned dim, unsigned live, float* scores) {
    const unsigned lane = threadIdx.x % row_lanes;
    const unsigned first = threadIdx.x / warp_lanes * rows_per_warp;
    const unsigned in_warp = threadIdx.x % warp_lanes / row_lanes;
    if (first >= live) return;  // the whole warp
    const float* rows[rows_per_lane];
#pragma unroll
    for (unsigned r = 0; r < rows_per_lane; ++r) {
        // Surplus rows of the last warp read the last row again; their scores are not used.
        rows[r] = keys + std::size_t{min(first + r * rows_at_a_time + in_warp, live - 1)} * dim;
    }
    float sums[rows_per_lane][Tile] = {};
    const auto multiply = [&](unsigned c, const float(&key)[rows_per_lane][Width]) {
#pragma unroll
        for (unsigned t = 0; t < Tile; ++t) {
            float x[Width];
            load_floats<Width>(q + t * dim + c, x);
#pragma unroll
            for (unsigned r = 0; r < rows_per_lane; ++r) {
#pragma unroll
                for (unsigned i = 0; i < Width; ++i) sums[r][t] = fmaf(key[r][i], x[i], sums[r][t]);
            }
        }
    };
    constexpr unsigned step = row_lanes * Width;
    unsigned c = lane * Width;
    for (; c + (keys_at_a_time - 1) * step < dim; c += keys_at_a_time * step) {
        float keys_of[keys_at_a_time][rows_per_lane][Width];
#pragma unroll
        for (unsigned k = 0; k < keys_at_a_time; ++k) {
#pragma unroll
            for (unsigned r = 0; r < rows_per_lane; ++r) load_floats<Width>(rows[r] + c + k * step, keys_of[k][r]);
        }
#pragma unroll
        for (unsigned k = 0; k < keys_at_a_time; ++k) multiply(c + k * step, keys_of[k]);
    }
#pragma unroll 1
    for (; c < dim; c += step) {
        float key[rows_per_lane][Width];
#pragma unroll
        for (unsigned r = 0; r < rows_per_lane; ++r) load_floats<Width>(rows[r] + c, key[r]);
        multiply(c, key);
    }
    const float scale = 1.0F / sqrtf(static_cast<float>(dim));
#pragma unroll
    for (unsigned r = 0; r < rows_per_lane; ++r) {
#pragma unroll
        for (unsigned t = 0; t < Tile; ++t) {
            float sum = sums[r][t];
            for (unsigned apart = row_lanes / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(whole_warp, sum, apart);
            if (lane == t) scores[t * attention_chunk + first + r * rows_at_a_time + in_warp] = sum * scale;
        }
    }
}

// One warp: scores become weights e^(score - largest), 0 behind `live`. Lane 0 says what the others need.
__device__ inline void chunk_softmax(float* scores, unsigned live, float* largest, float* total) {
    constexpr unsigned per_lane = attention_chunk / warp_lanes;
    const unsigned lane = threadIdx.x % warp_lanes;
    float score[per_lane];
    float most = -INFINITY;
#pragma unroll
    for (unsigned i = 0; i < per_lane; ++i) {
        const unsigned p = lane + i * warp_lanes;
        score[i] = p < live ? scores[p] : -INFINITY;
        most = fmaxf(most, score[i]);
    }
    for (unsigned apart = warp_lanes / 2; apart > 0; apart /= 2) most = fmaxf(most, __shfl_xor_sync(whole_warp, most, apart));
    float sum = 0.0F;
#pragma unroll
    for (unsigned i = 0; i < per_lane; ++i) {
        const unsigned p = lane + i * warp_lanes;
        const float weight = p < live ? expf(score[i] - most) : 0.0F;
        scores[p] = weight;
        sum += weight;
    }
    sum = warp_sum(sum);
    if (lane == 0) *largest = most;
    if (lane == 0) *total = sum;
}

// sums[parts][Tile][dim] = sum of weight value, each part over its positions. A warp takes a part and a strip of 32 lanes' columns.
template <unsigned Width, unsigned Tile>
__device__ inline void chunk_values(const float* weights, const float* values, unsigned dim, unsigned live, unsigned parts, float* sums) {
    constexpr unsigned strip = warp_lanes * Width;
    const unsigned strips = (dim + strip - 1) / strip;
    const unsigned span = attention_chunk / parts;
    for (unsigned task = threadIdx.x / warp_lanes; task < strips * parts; task += attend_warps) {
        const unsigned part = task / strips;
        const unsigned column = task % strips * strip + threadIdx.x % warp_lanes * Width;
        if (column >= dim) continue;  // surplus lanes of the last strip
        float total[Tile][Width] = {};
#pragma unroll 1
        for (unsigned p = part * span; p < min((part + 1) * span, live); p += values_at_a_time) {
            float value[values_at_a_time][Width];
#pragma unroll
            for (unsigned j = 0; j < values_at_a_time; ++j) {
                load_floats<Width>(values + std::size_t{min(p + j, live - 1)} * dim + column, value[j]);  // the last again, weight 0
            }
#pragma unroll
            for (unsigned j = 0; j < values_at_a_time; j += 4) {
#pragma unroll
                for (unsigned t = 0; t < Tile; ++t) {
                    float weight[4];
                    load_floats<4>(weights + t * attention_chunk + p + j, weight);
#pragma unroll
                    for (unsigned w = 0; w < 4; ++w) {
#pragma unroll
                        for (unsigned i = 0; i < Width; ++i) total[t][i] = fmaf(value[j + w][i], weight[w], total[t][i]);
                    }
                }
            }
        }
#pragma unroll
        for (unsigned t = 0; t < Tile; ++t) store_floats<Width>(sums + (part * Tile + t) * dim + column, total[t]);
    }
}

}  // namespace kestrel::cuda
