// Launchers: each splits one operation over the threads of a pool, for any shape its kernel takes, and checks the shape.
#pragma once

#include <cstddef>
#include <span>

#include "engine/cpu/kernels.hpp"
#include "engine/cpu/thread_pool.hpp"

namespace kestrel::cpu {

enum class GdnVariant { reg, ref };

// y[rows] = a[rows][cols] x; see Kernels::gemv_rows for cols.
struct Projection {
    ArrangedMatrix a;
    float* y;
    std::size_t rows;
};

// All projections of one x[cols] in one parallel region.
void project(ThreadPool& pool, const Kernels& kernel, std::span<const Projection> projections, const float* x, std::size_t cols);

// The inputs of a gated-delta-net layer in one region: `mixed` projected, convolved and gated in place (see Kernels::conv_silu; its
// rows are the channels), and `z` projected.
struct Convolution {
    float* state;    // [taps - 1][channels]
    const float* w;  // [taps][channels]
    std::size_t taps;
};
void project_convolved(ThreadPool& pool, const Kernels& kernel, const Projection& mixed, const Convolution& convolution,
                       const Projection& z, const float* x, std::size_t cols);

// act[rows] = silu(gate x) (up x), gate and up [rows][cols]; `up_out` is scratch[rows]. One region.
void project_gated(ThreadPool& pool, const Kernels& kernel, const ArrangedMatrix& gate, const ArrangedMatrix& up, const float* x,
                   std::size_t rows, std::size_t cols, float* act, float* up_out);

// ya = a x, yb = b x, both [rows][cols]: k_f32_gemv2 in one region, or in a VLLM_GEMV_AB_BASELINE build k_f32_gemv in two.
void f32_gemv_pair(ThreadPool& pool, const Kernels& kernel, const float* a, const float* b, const float* x, std::size_t rows,
                   std::size_t cols, float* ya, float* yb);

// k_gdn_delta_reg or k_gdn_delta, in one region. Throws EngineError on a shape that the variant cannot take.
void gdn_delta(ThreadPool& pool, const Kernels& kernel, GdnVariant variant, const GdnDelta& step);

// Heads of one attention layer: keys and values are [kv_heads][capacity][dim], of which `positions` are in use;
// scores is scratch[heads][capacity].
struct Attention {
    const float* q;  // [heads][dim]
    const float* keys;
    const float* values;
    float* scores;
    float* out;  // [heads][dim]
    std::size_t heads;
    std::size_t kv_heads;
    std::size_t dim;
    std::size_t positions;
    std::size_t capacity;
};
void attend(ThreadPool& pool, const Kernels& kernel, const Attention& attention);

// Index of the largest value, the lowest among equals.
[[nodiscard]] std::size_t largest(std::span<const float> values);

}  // namespace kestrel::cpu
