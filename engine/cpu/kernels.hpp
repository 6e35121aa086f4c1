// Kernels of the decode step on ranges of rows, heads or tiles. They are compiled once per instruction set and chosen at run
// time. Every sum has one fixed order, the same in all of them and for any split into ranges, so that results do not depend
// on the processor or on the number of threads. All tensors are f32, row-major, but for gemv_rows' matrix; nothing needs more than 4-byte
// alignment.
#pragma once

#include <cstddef>

#include "engine/cpu/row_layout.hpp"
#include "engine/head_order.hpp"

namespace kestrel::cpu {

// One gated-delta-net step. S' = alpha S + k (x) beta (v - (alpha S)^T k); out = S'^T q. Which key head a value
// head reads: head_order.hpp. Heads and columns are independent of one another.
struct GdnDelta {
    float* state;        // [heads][kd][vd], updated
    const float* q;      // [k_heads][kd], normalised and scaled
    const float* k;      // [k_heads][kd], normalised
    const float* v;      // [heads][vd]
    const float* alpha;  // [heads], decay in (0, 1]
    const float* beta;   // [heads]
    float* out;          // [heads][vd]
    std::size_t heads;
    std::size_t k_heads;
    std::size_t kd;
    std::size_t vd;
    HeadOrder order = HeadOrder::grouped;
};

// Columns of a state that one thread works on at a time. Whole rows of the usual 128 columns suit the hardware's prefetching: with
// narrower tiles the step was 15 to 40 % slower.
inline constexpr std::size_t gdn_tile_columns = 128;
// The generic kernel keeps a row of sums on its stack.
inline constexpr std::size_t gdn_max_value_dim = 4096;

[[nodiscard]] inline std::size_t gdn_tiles_per_head(const GdnDelta& d) {
    return (d.vd + gdn_tile_columns - 1) / gdn_tile_columns;
}

// A query head's attention over `positions` keys and values.
struct Attend {
    const float* q;       // [dim]
    const float* keys;    // [positions][dim]
    const float* values;  // [positions][dim]
    float* scores;        // [positions], scratch
    float* out;           // [dim]
    std::size_t positions;
    std::size_t dim;
    float scale;
};

struct Kernels {
    const char* name;
    // y[r] = sum over c of a[r][c] x[c], for rows first..last of a[][cols], which may lie unaligned; cols is a multiple of the type's
    // block_elements. The same bits as with the f32 matrix that `dequantise` gives of the rows before they were arranged.
    void (*gemv_rows)(const ArrangedMatrix& a, const float* x, std::size_t cols, float* y, std::size_t first, std::size_t last);
#if VLLM_GEMV_AB_BASELINE
    void (*f32_gemv)(const float* a, const float* x, std::size_t cols, float* y, std::size_t first, std::size_t last);
#else
    // The rows of two equal shapes, numbered through: row r >= rows is row r - rows of b.
    void (*f32_gemv2)(const float* a, const float* b, const float* x, std::size_t rows, std::size_t cols, float* ya, float* yb,
                      std::size_t first, std::size_t last);
#endif
    void (*gdn_delta)(const GdnDelta& d, std::size_t first_head, std::size_t last_head);
    void (*gdn_delta_reg)(const GdnDelta& d, std::size_t first_tile, std::size_t last_tile);
    // y = x rsqrt(mean(x^2) + eps) w; y may be x.
    void (*rms_norm)(const float* x, const float* w, std::size_t n, float eps, float* y);
    // y = w (x rsqrt(mean(x^2) + eps)) silu(gate); y may be x.
    void (*gated_rms_norm)(const float* x, const float* w, const float* gate, std::size_t n, float eps, float* y);
    // x = x rsqrt(sum(x^2) + 1e-6) scale.
    void (*l2_norm)(float* x, std::size_t n, float scale);
    // Depthwise causal convolution of one sample, then SiLU, for channels first..last. w[taps][channels], tap 0 meets the oldest
    // sample; state[taps - 1][channels], oldest first, takes x in; y may be x.
    void (*conv_silu)(float* state, const float* w, const float* x, std::size_t channels, std::size_t taps, float* y, std::size_t first,
                      std::size_t last);
    void (*silu_mul)(float* gate, const float* up, std::size_t n);    // gate = silu(gate) up
    void (*sigmoid_mul)(float* x, const float* gate, std::size_t n);  // x = x sigmoid(gate)
    void (*sigmoid)(float* x, std::size_t n);
    void (*add)(float* x, const float* y, std::size_t n);  // x = x + y
    void (*attend)(const Attend& a);
};

// The widest set this processor runs. All sets give the same bits.
[[nodiscard]] const Kernels& kernels();

namespace base {
const Kernels& table();
}
#if defined(__x86_64__)
namespace avx2 {
const Kernels& table();
}
namespace avx512 {
const Kernels& table();
}
#endif

}  // namespace kestrel::cpu
