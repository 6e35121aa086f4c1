#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/kernel_launch.cuh"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

#include "engine/cuda/gdn_delta_twin.inc"

// One thread per head. Softplus becomes linear above 20, where e^-x is lost in f32: the bound of the reference implementations.
__global__ void k_gdn_beta_g(float* b, float* a, const float* rate, const float* dt_bias, unsigned heads) {
    wait_for_previous();
    const unsigned h = blockIdx.x * blockDim.x + threadIdx.x;
    if (h >= heads) return;  // the last block's surplus threads
    b[h] = sigmoid(b[h]);
    const float x = a[h] + dt_bias[h];
    const float softplus = x > 20.0F ? x : log1pf(expf(x));
    a[h] = rate[h] * softplus;
}

void launch_gdn_beta_g(float* b, float* a, const float* rate, const float* dt_bias, std::size_t heads, const Queue& queue) {
    constexpr unsigned threads = 32;
    require(heads <= 0x7FFFFFFF, "gdn_beta_g: below 2^31 heads");
    launch("k_gdn_beta_g", k_gdn_beta_g, {blocks_for(heads, threads), threads}, queue, b, a, rate, dt_bias, heads);
}

}  // namespace kestrel::cuda
