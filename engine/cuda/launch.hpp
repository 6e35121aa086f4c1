// The launchers: each states what its kernel takes, checks it, and computes the grid itself from the rows, so that a launch which covers
// too few of them cannot be written. All pointers are to device memory, all launches go into `stream`, all throw EngineError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "engine/attention_chunks.hpp"
#include "engine/tensor_type.hpp"

namespace kestrel::cuda {

// What a token needs to know; in device memory, so that a captured graph stays the same.
struct Control {
    std::int32_t token;
    std::int32_t position;
    std::int32_t next;  // written by launch_argmax
    std::int32_t unused;
};

// A weight matrix, [rows][cols], row-major; quantised ones as planes.hpp says. 16-byte aligned.
struct Matrix {
    const std::byte* data;
    TensorType type;
    std::size_t rows;
    std::size_t cols;
};

// y[rows] = m x, or y += m x. Any type and shape; quantised rows are whole blocks. x and y are 16-byte aligned.
enum class Store { replace, add };
void launch_gemv(const Matrix& m, const float* x, float* y, Store store, cudaStream_t stream);

// ya = a x, yb = b x; a and b are [rows][cols] f32. One launch of k_f32_gemv2, or two of k_f32_gemv in a VLLM_GEMV_AB_BASELINE build.
void launch_f32_gemv_pair(const float* a, const float* b, const float* x, std::size_t rows, std::size_t cols, float* ya, float* yb,
                          cudaStream_t stream);

// hidden[cols] = row control->token of `embed`.
void launch_embed(const Matrix& embed, const Control* control, float* hidden, cudaStream_t stream);

// y = x rsqrt(mean(x^2) + eps) w; y may be x.
void launch_rms_norm(const float* x, const float* w, std::size_t n, float eps, float* y, cudaStream_t stream);

// Rows of n: x = x rsqrt(sum(x^2) + 1e-6), the first `scaled_rows` also times `scale`.
void launch_l2_norm(float* x, std::size_t rows, std::size_t n, std::size_t scaled_rows, float scale, cudaStream_t stream);

// Rows of n: x = w (x rsqrt(mean(x^2) + eps)) silu(gate). w[n], gate like x.
void launch_gated_rms_norm(float* x, const float* w, const float* gate, std::size_t rows, std::size_t n, float eps, cudaStream_t stream);

// Depthwise causal convolution over time, then SiLU, in place: state is [taps - 1][channels], oldest first, and moves on by one; w is
// [taps][channels].
void launch_conv_silu(float* state, const float* w, float* x, std::size_t channels, std::size_t taps, cudaStream_t stream);

// From the projections b, a to beta = sigmoid(b) and g = rate softplus(a + dt_bias), the logarithm of the decay. In place.
void launch_gdn_beta_g(float* b, float* a, const float* rate, const float* dt_bias, std::size_t heads, cudaStream_t stream);

// What a layer does between its projections and its step, in one launch: launch_conv_silu over all channels, launch_l2_norm over the heads
// of q, which are scaled, and of k, and launch_gdn_beta_g. The same bits as those three.
struct GdnInputs {
    float* conv_state;     // [taps - 1][channels], channels = 2 k_heads kd + heads vd
    const float* conv;     // [taps][channels]
    float* mixed;          // [channels], in place: q[k_heads][kd], k[k_heads][kd], v[heads][vd]
    float* beta;           // [heads], in place
    float* g;              // [heads], in place
    const float* rate;     // [heads]
    const float* dt_bias;  // [heads]
    unsigned heads;
    unsigned k_heads;
    unsigned kd;  // at most 6144
    unsigned vd;
    unsigned taps;  // times channels below 2^31
    float q_scale;
};
void launch_gdn_inputs(const GdnInputs& in, cudaStream_t stream);

// One gated-delta-net step: S' = e^g S + k (x) beta (v - (e^g S)^T k), out = S'^T q.
struct GdnStep {
    float* state;       // [heads][kd][vd], updated
    const float* q;     // [k_heads][kd], normalised and scaled
    const float* k;     // [k_heads][kd], normalised
    const float* v;     // [heads][vd]
    const float* g;     // [heads]
    const float* beta;  // [heads]
    float* out;         // [heads][vd]
    unsigned heads;
    unsigned k_heads;  // divides heads
    unsigned kd;
    unsigned vd;
    bool tiled;  // value head h reads key head h % k_heads, else h / (heads / k_heads)
};
// k_gdn_delta_reg has been compiled for this shape.
[[nodiscard]] bool gdn_delta_reg_serves(const GdnStep& step);
void launch_gdn_delta(const GdnStep& step, cudaStream_t stream);      // vd <= 1024
void launch_gdn_delta_reg(const GdnStep& step, cudaStream_t stream);  // only where gdn_delta_reg_serves

// cosine[i], sine[i] of control->position inverse_frequency[i], in double before rounding.
void launch_rotation(const Control* control, const double* inverse_frequency, std::size_t pairs, float* cosine, float* sine,
                     cudaStream_t stream);

// One token's heads of an attention layer. q, keys, values and scores are 16-byte aligned where dim is a multiple of four.
struct AttentionHeads {
    const float* q_and_gate;  // [heads][2][dim], projected
    const float* k;           // [kv_heads][dim], projected
    const float* v;           // [kv_heads][dim], projected
    const float* q_norm;      // [dim]
    const float* k_norm;      // [dim]
    const float* cosine;      // [pairs]
    const float* sine;        // [pairs]
    float* q;                 // [heads][dim]: normalised and rotated
    float* keys;              // [kv_heads][capacity][dim]: gets row control->position
    float* values;            // likewise
    float* scores;            // scratch, attention_scratch_floats(heads, dim, capacity)
    float* out;               // [heads][dim]: attended, times sigmoid(gate)
    unsigned heads;
    unsigned kv_heads;  // divides heads
    unsigned dim;       // at most 4096
    unsigned pairs;     // 2 pairs <= dim: pairs (i, i + pairs) are rotated
    unsigned capacity;
    float eps;
};
// What both launchers need: kv_heads, dim, pairs and capacity as said above.
void check_attention(const AttentionHeads& a);
void launch_qkv_norm_rope(const AttentionHeads& a, const Control* control, cudaStream_t stream);
// k_attend, and where the capacity is more than attention_chunk k_attend_combine. The same bits for any capacity.
void launch_attend(const AttentionHeads& a, const Control* control, cudaStream_t stream);

// gate = silu(gate) up.
void launch_silu_mul(float* gate, const float* up, std::size_t n, cudaStream_t stream);

// control->next = index of the largest value, the lowest among equals; not-a-number never wins. scratch: argmax_scratch_bytes(n).
[[nodiscard]] std::size_t argmax_scratch_bytes(std::size_t n);
void launch_argmax(const float* values, std::size_t n, void* scratch, Control* control, cudaStream_t stream);

// Values of synthetic weights (engine/synthetic.hpp): element e follows from mix(key + (e + 1) G).
struct SyntheticValues {
    std::uint64_t key;
    bool levels;  // 15 levels times `unit`, or `centre` + step 2^-15 `unit`
    float centre;
    float unit;  // a power of two, for levels from 2^-14 to 1
};
// A matrix [rows][cols] as a file holds it and as the host makes it: blocks of `type` one after the other (tensor_type.hpp). Types other
// than f32 take levels only, in whole blocks. transposed, f32 only: element (r, c) lies at c rows + r. out: aligned to 4 bytes.
void launch_synthetic(const SyntheticValues& values, TensorType type, std::size_t rows, std::size_t cols, bool transposed, std::byte* out,
                      cudaStream_t stream);

}  // namespace kestrel::cuda
