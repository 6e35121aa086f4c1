// Single operators, run by the launchers and kernels that decode runs.
//
// "gdn_delta", variants "", "reg", "ref", and with tiled heads (head_order.hpp) "reg-tiled", "ref-tiled": inputs S[h,kd,vd], q[kh,kd],
// k[kh,kd], v[h,vd], g[h], beta[h], outputs S'[h,kd,vd],
//   o[h,vd]. q and k as the recurrence reads them (normalised, q scaled); g is the logarithm of the decay. kh divides h.
// "f32_gemv2", variant "": inputs A[r,c], B[r,c], x[c], outputs ya[r], yb[r]. In a VLLM_GEMV_AB_BASELINE build two k_f32_gemv.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "engine/abi.h"

namespace kestrel {

// Throws EngineError: KESTREL_UNSUPPORTED for an unknown operator or variant, KESTREL_BAD_ARGUMENT for a wrong number of tensors
// or a wrong shape. Outputs may not overlap inputs, except S' with S if they are the same memory.
void run_operator(std::string_view name, std::string_view variant, std::span<const kestrel_tensor> inputs,
                  std::span<kestrel_tensor> outputs);

}  // namespace kestrel
