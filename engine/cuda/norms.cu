#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/kernel_launch.cuh"
#include "engine/cuda/reduce.cuh"
#include "engine/cuda/split.cuh"

namespace kestrel::cuda {

constexpr unsigned vector_threads = 512;

// Every block sums all squares, the same way, and writes its own 512 elements: reading a vector again costs less than one more launch.
__global__ void __launch_bounds__(vector_threads)
    k_rms_norm_unit(const float* x, const float* w, unsigned n, float eps, float* y, __nv_bfloat16* parts) {
    wait_for_previous();
    float sum = 0.0F;
    if (n % 4 == 0) {
        const float4* quads = reinterpret_cast<const float4*>(x);
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < n / 4; i += vector_threads) {
            const float4 v = quads[i];
            sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
        }
    } else {
        for (unsigned i = threadIdx.x; i < n; i += vector_threads) sum += x[i] * x[i];
    }
    const float factor = 1.0F / sqrtf(block_sum(sum) / static_cast<float>(n) + eps);
    const unsigned i = blockIdx.x * vector_threads + threadIdx.x;
    if (i >= n) return;  // the last block's surplus threads
    const float normed = x[i] * factor * w[i];
    y[i] = normed;
    if (parts != nullptr) store_split(normed, i, parts);
}

// One block per row.
__global__ void k_l2_norm(float* x, unsigned n, unsigned scaled_rows, float scale) {
    wait_for_previous();
    float* row = x + std::size_t{blockIdx.x} * n;
    float sum = 0.0F;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) sum += row[i] * row[i];
    const float factor = 1.0F / sqrtf(block_sum(sum) + 1e-6F);
    const float extra = blockIdx.x < scaled_rows ? scale : 1.0F;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) row[i] = row[i] * factor * extra;
}

// One block per row.
__global__ void k_gated_rms_norm(float* x, const float* w, const float* gate, unsigned n, float eps, __nv_bfloat16* parts) {
    wait_for_previous();
    float* row = x + std::size_t{blockIdx.x} * n;
    const float* row_gate = gate + std::size_t{blockIdx.x} * n;
    float sum = 0.0F;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) sum += row[i] * row[i];
    const float factor = 1.0F / sqrtf(block_sum(sum) / static_cast<float>(n) + eps);
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        const float y = w[i] * (row[i] * factor) * silu(row_gate[i]);
        row[i] = y;
        if (parts != nullptr) store_split(y, std::size_t{blockIdx.x} * n + i, parts);
    }
}

// No unnamed namespace in device sources: its mangled name would carry the place on disk.

// Threads for a row of n: whole warps, at most `most`.
inline unsigned threads_for(std::size_t n, unsigned most) {
    return n >= most ? most : static_cast<unsigned>((n + warp_lanes - 1) / warp_lanes * warp_lanes);
}

constexpr std::size_t longest_row = 0x7FFFFFFF;
constexpr unsigned head_threads = 128;

void launch_rms_norm(const float* x, const float* w, std::size_t n, float eps, float* y, float* parts, const Queue& queue) {
    require(n > 0 && n <= longest_row && (parts == nullptr || can_split(n)),
            "rms_norm: 1 to 2^31 - 1 elements, whole sixty-fours to be split");
    require(x != y, "rms_norm: a result of its own, since all blocks read the whole vector");
    launch("k_rms_norm_unit", k_rms_norm_unit, {blocks_for(n, vector_threads), vector_threads}, queue, x, w, n, eps, y, parts_at(parts));
}

void launch_l2_norm(float* x, std::size_t rows, std::size_t n, std::size_t scaled_rows, float scale, const Queue& queue) {
    require(n > 0 && n <= longest_row && scaled_rows <= rows, "l2_norm: rows of 1 to 2^31 - 1 elements, no more scaled than all");
    launch("k_l2_norm", k_l2_norm, {blocks_for(rows, 1), threads_for(n, head_threads)}, queue, x, n, scaled_rows, scale);
}

void launch_gated_rms_norm(float* x, const float* w, const float* gate, std::size_t rows, std::size_t n, float eps, float* parts,
                           const Queue& queue) {
    require(n > 0 && n <= longest_row && (parts == nullptr || can_split(rows * n)),
            "gated_rms_norm: rows of 1 to 2^31 - 1 elements, whole sixty-fours in all to be split");
    launch("k_gated_rms_norm", k_gated_rms_norm, {blocks_for(rows, 1), threads_for(n, head_threads)}, queue, x, w, gate, n, eps,
           parts_at(parts));
}

}  // namespace kestrel::cuda
