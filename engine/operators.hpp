// Single operators, run by the launchers and kernels that decode runs. Names, shapes and their checks are the same in all engines.
//
// "gdn_delta", variants "", "reg", "ref", with tiled heads (head_order.hpp) "tiled", "reg-tiled", "ref-tiled": inputs S[h,kd,vd], q[kh,kd],
// k[kh,kd], v[h,vd], g[h], beta[h], outputs S'[h,kd,vd],
//   o[h,vd]. q and k as the recurrence reads them (normalised, q scaled); g is the logarithm of the decay. kh divides h.
// "f32_gemv2", variant "": inputs A[r,c], B[r,c], x[c], outputs ya[r], yb[r]. In a VLLM_GEMV_AB_BASELINE build two k_f32_gemv.
// "q_gemv", variant the name of a stored type ("f32", "f16", "bf16", "q4_0", "q4_1", "q8_0", "q6_k"): inputs A[r,c], x[c], output y[r].
//   A is stored in that type first (quantise.hpp), the same bytes in every engine; y = A x of what was stored. c is whole blocks.
// "attention", variant "": inputs q[h,d], gate[h,d], keys[p,kh,d], values[p,kh,d], output out[h,d]: one token's attention over p positions,
//   q and keys as attention reads them (normalised and turned), times sigmoid(gate). kh divides h.
// "rms_norm", variant "": inputs x[n], w[n], eps[1], output y[n] = x rsqrt(mean(x^2) + eps) w.
// "conv_silu", variant "": inputs state[t-1,c], w[t,c], x[c], outputs state'[t-1,c], y[c]: the causal convolution of one sample, then SiLU;
//   tap 0 meets the oldest sample. t is at least 2.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "engine/abi.h"
#include "engine/head_order.hpp"
#include "engine/tensor_type.hpp"

namespace kestrel {

// Host memory, f32, row-major; checked before a backend sees it.
struct GdnDeltaCall {
    std::string_view variant;  // "" or a value of the engine's switch
    HeadOrder order;
    const float* q;     // [k_heads][kd]
    const float* k;     // [k_heads][kd]
    const float* v;     // [heads][vd]
    const float* g;     // [heads]
    const float* beta;  // [heads]
    float* state;       // [heads][kd][vd], updated in place
    float* out;         // [heads][vd]
    std::size_t heads;
    std::size_t k_heads;
    std::size_t kd;
    std::size_t vd;
};

struct GemvPairCall {
    const float* a;  // [rows][cols]
    const float* b;  // [rows][cols]
    const float* x;  // [cols]
    float* ya;       // [rows]
    float* yb;       // [rows]
    std::size_t rows;
    std::size_t cols;
};

struct QuantisedGemvCall {
    StoredTensor a;  // [rows][cols]
    const float* x;  // [cols]
    float* y;        // [rows]
    std::size_t rows;
    std::size_t cols;
};

struct AttentionCall {
    const float* q;       // [heads][dim]
    const float* gate;    // [heads][dim]
    const float* keys;    // [positions][kv_heads][dim]
    const float* values;  // [positions][kv_heads][dim]
    float* out;           // [heads][dim]
    std::size_t heads;
    std::size_t kv_heads;
    std::size_t dim;
    std::size_t positions;
};

struct RmsNormCall {
    const float* x;  // [n]
    const float* w;  // [n]
    float* y;        // [n]
    std::size_t n;
    float eps;
};

struct ConvSiluCall {
    float* state;    // [taps - 1][channels], updated in place
    const float* w;  // [taps][channels]
    const float* x;  // [channels]
    float* y;        // [channels]
    std::size_t channels;
    std::size_t taps;
};

// A backend's operators; null: it does not have this one. They throw EngineError, KESTREL_UNSUPPORTED for an unknown variant.
struct BackendOperators {
    void (*gdn_delta)(const GdnDeltaCall& call) = nullptr;
    void (*f32_gemv_pair)(const GemvPairCall& call) = nullptr;
    void (*q_gemv)(const QuantisedGemvCall& call) = nullptr;  // KESTREL_UNSUPPORTED for a type that it cannot multiply
    void (*attention)(const AttentionCall& call) = nullptr;
    void (*rms_norm)(const RmsNormCall& call) = nullptr;
    void (*conv_silu)(const ConvSiluCall& call) = nullptr;
};

// Throws EngineError: KESTREL_UNSUPPORTED for an unknown operator or variant, KESTREL_BAD_ARGUMENT for a wrong number of tensors
// or a wrong shape. Outputs may not overlap inputs, except that an updated
// state may be the same memory as the old one.
void run_operator(const BackendOperators& operators, std::string_view name, std::string_view variant,
                  std::span<const kestrel_tensor> inputs, std::span<kestrel_tensor> outputs);

}  // namespace kestrel
