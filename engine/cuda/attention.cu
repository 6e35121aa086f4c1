#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

// One block for all pairs. Once per token, so the double functions are affordable; rounding to f32 hides their last bits.
__global__ void k_rotation(const Control* control, const double* inverse_frequency, unsigned pairs, float* cosine, float* sine) {
    for (unsigned i = threadIdx.x; i < pairs; i += blockDim.x) {
        double s = 0.0;
        double c = 0.0;
        sincos(control->position * inverse_frequency[i], &s, &c);
        cosine[i] = static_cast<float>(c);
        sine[i] = static_cast<float>(s);
    }
}

// x[dim] normalised into `normed` (shared memory), its first 2 pairs rotated: pairs (i, i + pairs).
__device__ inline void norm_rope(const float* x, const float* w, const AttentionHeads& a, float* normed, float* out) {
    float sum = 0.0F;
    for (unsigned i = threadIdx.x; i < a.dim; i += blockDim.x) sum += x[i] * x[i];
    const float factor = 1.0F / sqrtf(block_sum(sum) / static_cast<float>(a.dim) + a.eps);
    for (unsigned i = threadIdx.x; i < a.dim; i += blockDim.x) normed[i] = x[i] * factor * w[i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < a.dim; i += blockDim.x) {
        float value = normed[i];
        if (i < a.pairs) {
            value = value * a.cosine[i] - normed[i + a.pairs] * a.sine[i];
        } else if (i < 2 * a.pairs) {
            value = value * a.cosine[i - a.pairs] + normed[i - a.pairs] * a.sine[i - a.pairs];
        }
        out[i] = value;
    }
}

// One block per head: the query heads, then those of the keys, then those of the values.
__global__ void k_qkv_norm_rope(AttentionHeads a, const Control* control) {
    extern __shared__ float normed[];
    const unsigned h = blockIdx.x;
    if (h < a.heads) {
        norm_rope(a.q_and_gate + std::size_t{2} * h * a.dim, a.q_norm, a, normed, a.q + std::size_t{h} * a.dim);
        return;
    }
    const bool is_key = h - a.heads < a.kv_heads;
    const unsigned kv = is_key ? h - a.heads : h - a.heads - a.kv_heads;
    const std::size_t row = (std::size_t{kv} * a.capacity + static_cast<unsigned>(control->position)) * a.dim;
    if (is_key) {
        norm_rope(a.k + std::size_t{kv} * a.dim, a.k_norm, a, normed, a.keys + row);
    } else {
        for (unsigned i = threadIdx.x; i < a.dim; i += blockDim.x) a.values[row + i] = a.v[std::size_t{kv} * a.dim + i];
    }
}

void launch_rotation(const Control* control, const double* inverse_frequency, std::size_t pairs, float* cosine, float* sine,
                     cudaStream_t stream) {
    require(pairs > 0 && pairs <= 0x7FFFFFFF, "rotation: 1 to 2^31 - 1 pairs");
    k_rotation<<<1, warp_lanes, 0, stream>>>(control, inverse_frequency, static_cast<unsigned>(pairs), cosine, sine);
    check_launch("k_rotation");
}

void check_attention(const AttentionHeads& a) {
    constexpr unsigned largest_dim = 4096;  // a head in shared memory
    require(a.heads > 0 && a.kv_heads > 0 && a.heads % a.kv_heads == 0, "attention: the key/value heads divide the query heads");
    require(a.dim > 0 && a.dim <= largest_dim && a.pairs <= a.dim / 2 && a.capacity > 0,
            "attention: heads of 1 to 4096, rotated pairs within them, room for a position");
}

void launch_qkv_norm_rope(const AttentionHeads& a, const Control* control, cudaStream_t stream) {
    constexpr unsigned threads = 128;
    check_attention(a);
    const std::size_t heads = std::size_t{a.heads} + 2 * std::size_t{a.kv_heads};
    k_qkv_norm_rope<<<blocks_for(heads, 1), threads, a.dim * sizeof(float), stream>>>(a, control);
    check_launch("k_qkv_norm_rope");
}

}  // namespace kestrel::cuda
