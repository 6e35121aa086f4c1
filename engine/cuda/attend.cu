// Attention of one token over the positions so far, in chunks of attention_chunk positions.
//   k_attend          a block per chunk and tile of query heads that share a key/value head: every row of keys and values is read once for
//                     the whole tile. Finds the chunk's largest scores, and the sums of weights and of weighted values relative to them
//   k_attend_combine  puts the chunks together, in a fixed order. Only launched where the cache has room for more than one chunk
// The grid covers the capacity, so that a captured graph serves every position; blocks beyond the position leave at once. The order of
// every sum follows from position and shape alone, so the result is the same for any capacity.
#include "engine/cuda/launch.hpp"

#include "engine/cuda/attend_chunk.cuh"
#include "engine/cuda/check.hpp"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

constexpr unsigned chunks_at_a_time = 8;  // of which a thread has its columns under way
constexpr unsigned tile_floats = 8192;    // of shared memory, first for a tile's q, then for its sums

struct AttendTiling {
    unsigned heads;        // query heads of a block
    unsigned per_kv_head;  // blocks per key/value head and chunk
    unsigned parts;        // of a chunk's positions, summed by different warps; a power of two
    unsigned chunks;       // that the capacity has
};

// Scratch: what each chunk found.
struct ChunkResults {
    float* vectors;  // [heads][chunks][dim]
    float* largest;  // [heads][chunks]
    float* sums;     // [heads][chunks]
};

__device__ inline ChunkResults chunk_results(const AttentionHeads& a, unsigned chunks) {
    const std::size_t count = std::size_t{a.heads} * chunks;
    float* largest = a.scores + count * a.dim;
    return {a.scores, largest, largest + count};
}

__device__ inline float gate_of(const AttentionHeads& a, unsigned head, unsigned i) {
    return a.q_and_gate[(std::size_t{2} * head + 1) * a.dim + i];
}
__device__ inline float attended(float total, float sum, float gate) {
    return total * (1.0F / sum) * sigmoid(gate);
}

template <unsigned Width, unsigned Tile>
__global__ void __launch_bounds__(attend_threads, 2) k_attend(AttentionHeads a, AttendTiling tiling, const Control* control) {
    extern __shared__ __align__(16) float shared[];  // q[Tile][dim]; from the values on their sums, [parts][Tile][dim]
    __shared__ __align__(16) float weights[Tile * attention_chunk];
    __shared__ float largest[Tile];
    __shared__ float sums[Tile];
    const unsigned positions = static_cast<unsigned>(control->position) + 1;
    const unsigned tiles = a.kv_heads * tiling.per_kv_head;
    const unsigned chunk = blockIdx.x / tiles;
    const unsigned first = chunk * attention_chunk;
    if (first >= positions) return;  // a chunk of the future
    const unsigned live = min(attention_chunk, positions - first);
    const unsigned kv = blockIdx.x % tiles / tiling.per_kv_head;
    const unsigned group = a.heads / a.kv_heads;
    const unsigned in_group = blockIdx.x % tiling.per_kv_head * tiling.heads;
    const unsigned head = kv * group + in_group;
    const unsigned heads = min(tiling.heads, group - in_group);
    const std::size_t cache = (std::size_t{kv} * a.capacity + first) * a.dim;

    const float* q = a.q + std::size_t{head} * a.dim;
    for (unsigned i = threadIdx.x * Width; i < Tile * a.dim; i += attend_threads * Width) {
        float x[Width] = {};
        if (i < heads * a.dim) load_floats<Width>(q + i, x);
        store_floats<Width>(shared + i, x);
    }
    // The values travel to the second-level cache while keys are multiplied: a line of 32 floats each.
#pragma unroll 1
    for (unsigned i = threadIdx.x * 32; i < live * a.dim; i += attend_threads * 32) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(a.values + cache + i));
    }
    __syncthreads();
    chunk_scores<Width, Tile>(shared, a.keys + cache, a.dim, live, weights);
    __syncthreads();
    const unsigned warp = threadIdx.x / warp_lanes;
    if (warp < Tile) chunk_softmax(weights + warp * attention_chunk, live, largest + warp, sums + warp);
    __syncthreads();
    chunk_values<Width, Tile>(weights, a.values + cache, a.dim, live, tiling.parts, shared);
    __syncthreads();

    const ChunkResults results = chunk_results(a, tiling.chunks);
    const std::size_t result = std::size_t{head} * tiling.chunks + chunk;  // of the tile's first head
    const bool alone = positions <= attention_chunk;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < a.dim; i += attend_threads) {
        float gate[Tile] = {};
        float total[Tile] = {};
#pragma unroll
        for (unsigned t = 0; t < Tile; ++t) {
            if (alone && t < heads) gate[t] = gate_of(a, head + t, i);  // all of them at once, before any is needed
        }
#pragma unroll 1
        for (unsigned part = 0; part < tiling.parts; ++part) {
#pragma unroll
            for (unsigned t = 0; t < Tile; ++t) total[t] += shared[(part * Tile + t) * a.dim + i];
        }
#pragma unroll
        for (unsigned t = 0; t < Tile; ++t) {
            if (t >= heads) break;
            if (alone) {
                a.out[std::size_t{head + t} * a.dim + i] = attended(total[t], sums[t], gate[t]);
            } else {
                results.vectors[(result + std::size_t{t} * tiling.chunks) * a.dim + i] = total[t];
            }
        }
    }
    if (!alone && threadIdx.x < heads) {
        results.largest[result + std::size_t{threadIdx.x} * tiling.chunks] = largest[threadIdx.x];
        results.sums[result + std::size_t{threadIdx.x} * tiling.chunks] = sums[threadIdx.x];
    }
}

// A block per query head and strip of 32 lanes' columns; warp w sums chunks w, w + 8, w + 16, ..., then thread after thread the warps'
// sums.
template <unsigned Width>
__global__ void __launch_bounds__(attend_threads) k_attend_combine(AttentionHeads a, unsigned chunks, const Control* control) {
    constexpr unsigned strip = warp_lanes * Width;
    __shared__ __align__(16) float partial[attend_warps * strip];
    __shared__ float partial_sum[attend_warps];
    const unsigned live = static_cast<unsigned>(control->position) / attention_chunk + 1;
    if (live == 1) return;  // k_attend has written the result
    const unsigned strips = (a.dim + strip - 1) / strip;
    const unsigned head = blockIdx.x / strips;
    const unsigned first = blockIdx.x % strips * strip;
    const unsigned lane = threadIdx.x % warp_lanes;
    const unsigned warp = threadIdx.x / warp_lanes;
    const unsigned column = first + lane * Width;
    const ChunkResults results = chunk_results(a, chunks);
    const float* largest = results.largest + std::size_t{head} * chunks;
    const float* sums = results.sums + std::size_t{head} * chunks;
    const float* vectors = results.vectors + std::size_t{head} * chunks * a.dim + min(column, a.dim - Width);
    const unsigned own = first + threadIdx.x;  // what the thread writes in the end
    const bool writes = threadIdx.x < strip && own < a.dim;
    const float gate = writes ? gate_of(a, head, own) : 0.0F;

    float most = -INFINITY;
    for (unsigned c = threadIdx.x; c < live; c += attend_threads) most = fmaxf(most, largest[c]);
    most = block_max(most);
    float sum = 0.0F;
    float total[Width] = {};
#pragma unroll 1
    for (unsigned c = warp; c < live; c += chunks_at_a_time * attend_warps) {
        float top[chunks_at_a_time];
        float chunk_sum[chunks_at_a_time];
        float vector[chunks_at_a_time][Width];
#pragma unroll
        for (unsigned k = 0; k < chunks_at_a_time; ++k) {
            const unsigned at = min(c + k * attend_warps, live - 1);  // surplus ones the last again, with weight 0
            top[k] = largest[at];
            chunk_sum[k] = sums[at];
            load_floats<Width>(vectors + std::size_t{at} * a.dim, vector[k]);
        }
#pragma unroll
        for (unsigned k = 0; k < chunks_at_a_time; ++k) {
            const float weight = c + k * attend_warps < live ? expf(top[k] - most) : 0.0F;
            sum += chunk_sum[k] * weight;
#pragma unroll
            for (unsigned i = 0; i < Width; ++i) total[i] = fmaf(vector[k][i], weight, total[i]);
        }
    }
    store_floats<Width>(partial + warp * strip + lane * Width, total);
    if (lane == 0) partial_sum[warp] = sum;
    __syncthreads();
    if (!writes) return;
    float all = 0.0F;
    float all_sum = 0.0F;
    for (unsigned w = 0; w < attend_warps; ++w) {
        all += partial[w * strip + threadIdx.x];
        all_sum += partial_sum[w];
    }
    a.out[std::size_t{head} * a.dim + own] = attended(all, all_sum, gate);
}

// Query heads of a block: those of a key/value head, in equal tiles where their q would not fit.
inline unsigned heads_per_block(const AttentionHeads& a) {
    const unsigned fit = tile_floats / a.dim;
    const unsigned most = fit >= 8 ? most_tile : fit >= 6 ? 6 : fit >= 4 ? 4 : 2;
    const unsigned group = a.heads / a.kv_heads;
    const unsigned tiles = blocks_for(group, most);
    return blocks_for(group, tiles);
}

template <unsigned Width, unsigned Tile>
void launch_attend_as(const AttentionHeads& a, unsigned heads, const Control* control, cudaStream_t stream) {
    const unsigned strips = blocks_for(a.dim, warp_lanes * Width);
    unsigned parts = attend_warps;
    while (parts > 1 && parts * strips > attend_warps) parts /= 2;
    const AttendTiling tiling{.heads = heads,
                              .per_kv_head = blocks_for(a.heads / a.kv_heads, heads),
                              .parts = parts,
                              .chunks = blocks_for(a.capacity, attention_chunk)};
    const unsigned blocks = blocks_for(std::size_t{tiling.chunks} * a.kv_heads * tiling.per_kv_head, 1);
    k_attend<Width, Tile><<<blocks, attend_threads, parts * Tile * a.dim * sizeof(float), stream>>>(a, tiling, control);
    check_launch("k_attend");
    if (tiling.chunks == 1) return;
    k_attend_combine<Width><<<blocks_for(std::size_t{a.heads} * strips, 1), attend_threads, 0, stream>>>(a, tiling.chunks, control);
    check_launch("k_attend_combine");
}

inline bool attend_aligned(const float* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

void launch_attend(const AttentionHeads& a, const Control* control, cudaStream_t stream) {
    check_attention(a);
    if (a.dim % 4 != 0) return launch_attend_as<1, 1>(a, 1, control, stream);
    require(attend_aligned(a.q) && attend_aligned(a.keys) && attend_aligned(a.values) && attend_aligned(a.scores),
            "attention: q, keys, values and scores aligned to 16 bytes");
    const unsigned heads = heads_per_block(a);
    if (heads == 1) return launch_attend_as<4, 1>(a, heads, control, stream);
    if (heads == 2) return launch_attend_as<4, 2>(a, heads, control, stream);
    if (heads <= 4) return launch_attend_as<4, 4>(a, heads, control, stream);
    if (heads <= 6) return launch_attend_as<4, 6>(a, heads, control, stream);
    launch_attend_as<4, most_tile>(a, heads, control, stream);
}

}  // namespace kestrel::cuda
