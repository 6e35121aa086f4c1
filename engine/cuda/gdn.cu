#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/gdn_inputs.cuh"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

#include "engine/cuda/gdn_delta_twin.inc"

// One thread per head.
__global__ void k_gdn_beta_g(float* b, float* a, const float* rate, const float* dt_bias, unsigned heads) {
    const unsigned h = blockIdx.x * blockDim.x + threadIdx.x;
    if (h >= heads) return;  // the last block's surplus threads
    b[h] = sigmoid(b[h]);
    a[h] = gdn_log_decay(a[h], rate[h], dt_bias[h]);
}

void launch_gdn_beta_g(float* b, float* a, const float* rate, const float* dt_bias, std::size_t heads, cudaStream_t stream) {
    constexpr unsigned threads = 32;
    require(heads <= 0x7FFFFFFF, "gdn_beta_g: below 2^31 heads");
    k_gdn_beta_g<<<blocks_for(heads, threads), threads, 0, stream>>>(b, a, rate, dt_bias, static_cast<unsigned>(heads));
    check_launch("k_gdn_beta_g");
}

}  // namespace kestrel::cuda
