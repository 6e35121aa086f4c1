#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

// One block for the whole vector.
__global__ void k_rms_norm_unit(const float* x, const float* w, unsigned n, float eps, float* y) {
    float sum = 0.0F;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) sum += x[i] * x[i];
    const float factor = 1.0F / sqrtf(block_sum(sum) / static_cast<float>(n) + eps);
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * factor * w[i];
}

// One block per row.
__global__ void k_l2_norm(float* x, unsigned n, unsigned scaled_rows, float scale) {
    float* row = x + std::size_t{blockIdx.x} * n;
    float sum = 0.0F;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) sum += row[i] * row[i];
    const float factor = 1.0F / sqrtf(block_sum(sum) + 1e-6F);
    const float extra = blockIdx.x < scaled_rows ? scale : 1.0F;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) row[i] = row[i] * factor * extra;
}

// One block per row.
__global__ void k_gated_rms_norm(float* x, const float* w, const float* gate, unsigned n, float eps) {
    float* row = x + std::size_t{blockIdx.x} * n;
    const float* row_gate = gate + std::size_t{blockIdx.x} * n;
    float sum = 0.0F;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) sum += row[i] * row[i];
    const float factor = 1.0F / sqrtf(block_sum(sum) / static_cast<float>(n) + eps);
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) row[i] = w[i] * (row[i] * factor) * silu(row_gate[i]);
}

// No unnamed namespace in device sources: its mangled name would carry the place on disk.

// Threads for a row of n: whole warps, at most `most`.
inline unsigned threads_for(std::size_t n, unsigned most) {
    return n >= most ? most : static_cast<unsigned>((n + warp_lanes - 1) / warp_lanes * warp_lanes);
}

constexpr std::size_t longest_row = 0x7FFFFFFF;
constexpr unsigned vector_threads = 1024;
constexpr unsigned head_threads = 128;

void launch_rms_norm(const float* x, const float* w, std::size_t n, float eps, float* y, cudaStream_t stream) {
    require(n > 0 && n <= longest_row, "rms_norm: 1 to 2^31 - 1 elements");
    k_rms_norm_unit<<<1, threads_for(n, vector_threads), 0, stream>>>(x, w, static_cast<unsigned>(n), eps, y);
    check_launch("k_rms_norm_unit");
}

void launch_l2_norm(float* x, std::size_t rows, std::size_t n, std::size_t scaled_rows, float scale, cudaStream_t stream) {
    require(n > 0 && n <= longest_row && scaled_rows <= rows, "l2_norm: rows of 1 to 2^31 - 1 elements, no more scaled than all");
    k_l2_norm<<<blocks_for(rows, 1), threads_for(n, head_threads), 0, stream>>>(x, static_cast<unsigned>(n),
                                                                                static_cast<unsigned>(scaled_rows), scale);
    check_launch("k_l2_norm");
}

void launch_gated_rms_norm(float* x, const float* w, const float* gate, std::size_t rows, std::size_t n, float eps, cudaStream_t stream) {
    require(n > 0 && n <= longest_row, "gated_rms_norm: rows of 1 to 2^31 - 1 elements");
    k_gated_rms_norm<<<blocks_for(rows, 1), threads_for(n, head_threads), 0, stream>>>(x, w, gate, static_cast<unsigned>(n), eps);
    check_launch("k_gated_rms_norm");
}

}  // namespace kestrel::cuda
