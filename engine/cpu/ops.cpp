#include "engine/cpu/ops.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/error.hpp"

namespace kestrel::cpu {

#define KESTREL_TWIN_LAUNCHERS 1
#include "engine/cpu/f32_gemv_twin.inc"
#include "engine/cpu/gdn_delta_twin.inc"

namespace {

constexpr std::size_t floats_per_line = 16;

}  // namespace

void project(ThreadPool& pool, const Kernels& kernel, std::span<const Projection> projections, const float* x, std::size_t cols) {
    std::size_t total = 0;
    for (const Projection& p : projections) total += p.rows;
    pool.run([&](std::size_t part, std::size_t parts) {
        const Range mine = share_of(total, floats_per_line, part, parts);
        std::size_t begin = 0;
        for (const Projection& p : projections) {
            const std::size_t first = std::max(mine.first, begin);
            const std::size_t last = std::min(mine.last, begin + p.rows);
            if (first < last) kernel.gemv_rows(p.a, x, cols, p.y, first - begin, last - begin);
            begin += p.rows;
        }
    });
}

// A thread convolves the channels that it has just projected: they never leave its cache.
void project_convolved(ThreadPool& pool, const Kernels& kernel, const Projection& mixed, const Convolution& convolution,
                       const Projection& z, const float* x, std::size_t cols) {
    pool.run([&](std::size_t part, std::size_t parts) {
        const Range channels = share_of(mixed.rows, floats_per_line, part, parts);
        kernel.gemv_rows(mixed.a, x, cols, mixed.y, channels.first, channels.last);
        kernel.conv_silu(convolution.state, convolution.w, mixed.y, mixed.rows, convolution.taps, mixed.y, channels.first, channels.last);
        const Range rows = share_of(z.rows, floats_per_line, part, parts);
        kernel.gemv_rows(z.a, x, cols, z.y, rows.first, rows.last);
    });
}

void project_gated(ThreadPool& pool, const Kernels& kernel, const ArrangedMatrix& gate, const ArrangedMatrix& up, const float* x,
                   std::size_t rows, std::size_t cols, float* act, float* up_out) {
    pool.run([&](std::size_t part, std::size_t parts) {
        const Range mine = share_of(rows, floats_per_line, part, parts);
        kernel.gemv_rows(gate, x, cols, act, mine.first, mine.last);
        kernel.gemv_rows(up, x, cols, up_out, mine.first, mine.last);
        kernel.silu_mul(act + mine.first, up_out + mine.first, mine.last - mine.first);
    });
}

void f32_gemv_pair(ThreadPool& pool, const Kernels& kernel, const float* a, const float* b, const float* x, std::size_t rows,
                   std::size_t cols, float* ya, float* yb) {
    launch_f32_gemv_pair(pool, kernel, a, b, x, rows, cols, ya, yb);
}

void gdn_delta(ThreadPool& pool, const Kernels& kernel, GdnVariant variant, const GdnDelta& step) {
    if (variant == GdnVariant::ref) {
        launch_gdn_delta(pool, kernel, step);
    } else {
        launch_gdn_delta_reg(pool, kernel, step);
    }
}

void attend(ThreadPool& pool, const Kernels& kernel, const Attention& a) {
    const std::size_t group = a.heads / a.kv_heads;
    pool.run([&](std::size_t part, std::size_t parts) {
        const Range heads = share_of(a.heads, 1, part, parts);
        for (std::size_t h = heads.first; h < heads.last; ++h) {
            const std::size_t kv = h / group * a.capacity * a.dim;
            kernel.attend({.q = a.q + h * a.dim,
                           .keys = a.keys + kv,
                           .values = a.values + kv,
                           .scores = a.scores + h * a.capacity,
                           .out = a.out + h * a.dim,
                           .positions = a.positions,
                           .dim = a.dim,
                           .scale = 1.0F / std::sqrt(static_cast<float>(a.dim))});
        }
    });
}

std::size_t largest(std::span<const float> values) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
        if (values[i] > values[best]) best = i;
    }
    return best;
}

}  // namespace kestrel::cpu
