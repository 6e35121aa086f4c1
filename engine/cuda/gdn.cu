#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/gdn_inputs.cuh"
#include "engine/cuda/kernel_launch.cuh"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

#include "engine/cuda/gdn_delta_twin.inc"

// One thread per head.
__global__ void k_gdn_beta_g(float* b, float* a, const float* rate, const float* dt_bias, unsigned heads) {
    wait_for_previous();
    const unsigned h = blockIdx.x * blockDim.x + threadIdx.x;
    if (h >= heads) return;  // the last block's surplus threads
    b[h] = sigmoid(b[h]);
    a[h] = gdn_log_decay(a[h], rate[h], dt_bias[h]);
}

void launch_gdn_beta_g(float* b, float* a, const float* rate, const float* dt_bias, std::size_t heads, const Queue& queue) {
    constexpr unsigned threads = 32;
    require(heads <= 0x7FFFFFFF, "gdn_beta_g: below 2^31 heads");
    launch("k_gdn_beta_g", k_gdn_beta_g, {blocks_for(heads, threads), threads}, queue, b, a, rate, dt_bias, heads);
}

}  // namespace kestrel::cuda
