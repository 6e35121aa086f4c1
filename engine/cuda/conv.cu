#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/kernel_launch.cuh"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

// One thread per channel; neighbours in a warp read neighbouring channels.
__global__ void k_conv_silu(float* state, const float* w, float* x, unsigned channels, unsigned taps) {
    wait_for_previous();
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= channels) return;  // the last block's surplus threads
    float total = 0.0F;
    for (unsigned tap = 0; tap + 1 < taps; ++tap) {
        const float held = state[tap * channels + i];
        total += held * w[tap * channels + i];
        if (tap > 0) state[(tap - 1) * channels + i] = held;
    }
    const float current = x[i];
    total += current * w[(taps - 1) * channels + i];
    if (taps > 1) state[(taps - 2) * channels + i] = current;
    x[i] = silu(total);
}

void launch_conv_silu(float* state, const float* w, float* x, std::size_t channels, std::size_t taps, const Queue& queue) {
    constexpr unsigned threads = 128;
    require(taps > 0 && channels > 0 && channels <= 0x7FFFFFFF / taps, "conv_silu: taps and channels at least 1, together below 2^31");
    launch("k_conv_silu", k_conv_silu, {blocks_for(channels, threads), threads}, queue, state, w, x, channels, taps);
}

}  // namespace kestrel::cuda
