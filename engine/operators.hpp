// Single operators, run by the launchers and kernels that decode runs. Names, shapes and their checks are the same in all engines.
//
// "gdn_delta", variants "", "reg", "ref": inputs S[h,kd,vd], q[kh,kd], k[kh,kd], v[h,vd], g[h], beta[h], outputs S'[h,kd,vd],
//   o[h,vd]. q and k as the recurrence reads them (normalised, q scaled); g is the logarithm of the decay. kh divides h.
// "f32_gemv2", variant "": inputs A[r,c], B[r,c], x[c], outputs ya[r], yb[r]. In a VLLM_GEMV_AB_BASELINE build two k_f32_gemv.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "engine/abi.h"

namespace kestrel {

// Host memory, f32, row-major; checked before a backend sees it.
struct GdnDeltaCall {
    std::string_view variant;  // "" or a value of the engine's switch
    const float* q;            // [k_heads][kd]
    const float* k;            // [k_heads][kd]
    const float* v;            // [heads][vd]
    const float* g;            // [heads]
    const float* beta;         // [heads]
    float* state;              // [heads][kd][vd], updated in place
    float* out;                // [heads][vd]
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

// A backend's operators; null: it does not have this one. They throw EngineError, KESTREL_UNSUPPORTED for an unknown variant.
struct BackendOperators {
    void (*gdn_delta)(const GdnDeltaCall& call) = nullptr;
    void (*f32_gemv_pair)(const GemvPairCall& call) = nullptr;
};

// Throws EngineError: KESTREL_UNSUPPORTED for an unknown operator or variant, KESTREL_BAD_ARGUMENT for a wrong number of tensors
// or a wrong shape. Outputs may not overlap inputs, except S' with S if they are the same memory.
void run_operator(const BackendOperators& operators, std::string_view name, std::string_view variant,
                  std::span<const kestrel_tensor> inputs, std::span<kestrel_tensor> outputs);

}  // namespace kestrel
