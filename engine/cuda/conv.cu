#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/gdn_inputs.cuh"

namespace kestrel::cuda {

// One thread per channel; neighbours in a warp read neighbouring channels.
__global__ void k_conv_silu(float* state, const float* w, float* x, unsigned channels, unsigned taps) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= channels) return;  // the last block's surplus threads
    x[i] = conv_silu(state + i, w + i, x[i], channels, taps);
}

void launch_conv_silu(float* state, const float* w, float* x, std::size_t channels, std::size_t taps, cudaStream_t stream) {
    constexpr unsigned threads = 128;
    require(taps > 0 && channels > 0 && channels <= 0x7FFFFFFF / taps, "conv_silu: taps and channels at least 1, together below 2^31");
    k_conv_silu<<<blocks_for(channels, threads), threads, 0, stream>>>(state, w, x, static_cast<unsigned>(channels),
                                                                       static_cast<unsigned>(taps));
    check_launch("k_conv_silu");
}

}  // namespace kestrel::cuda
