// What the kernels before the gated-delta-net step share, so that the fused one has the bits of the separate ones.
#pragma once

#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

// A channel of the causal convolution, then SiLU: the taps' sum, oldest first, where the newest sample is `current`; the channel's state
// moves on by one. `state` and `w` point at the channel, whose samples and taps are `channels` apart.
__device__ inline float conv_silu_any(float* state, const float* w, float current, unsigned channels, unsigned taps) {
    float total = 0.0F;
    for (unsigned tap = 0; tap + 1 < taps; ++tap) {
        const float held = state[tap * channels];
        total += held * w[tap * channels];
        if (tap > 0) state[(tap - 1) * channels] = held;
    }
    total += current * w[(taps - 1) * channels];
    if (taps > 1) state[(taps - 2) * channels] = current;
    return silu(total);
}

// The same sum in the same order, with all loads under way before the first store.
template <unsigned Taps>
__device__ inline float conv_silu_of(float* state, const float* w, float current, unsigned channels) {
    float sample[Taps];
    float weight[Taps];
#pragma unroll
    for (unsigned tap = 0; tap < Taps; ++tap) {
        sample[tap] = tap + 1 < Taps ? state[tap * channels] : current;
        weight[tap] = w[tap * channels];
    }
    float total = 0.0F;
#pragma unroll
    for (unsigned tap = 0; tap < Taps; ++tap) total += sample[tap] * weight[tap];
#pragma unroll
    for (unsigned tap = 1; tap < Taps; ++tap) state[(tap - 1) * channels] = sample[tap];
    return silu(total);
}

__device__ inline float conv_silu(float* state, const float* w, float current, unsigned channels, unsigned taps) {
    constexpr unsigned usual_taps = 4;
    if (taps == usual_taps) return conv_silu_of<usual_taps>(state, w, current, channels);
    return conv_silu_any(state, w, current, channels, taps);
}

// The logarithm of the decay. Softplus becomes linear above 20, where e^-x is lost in f32: the bound of the reference implementations.
__device__ inline float gdn_log_decay(float a, float rate, float dt_bias) {
    const float x = a + dt_bias;
    const float softplus = x > 20.0F ? x : log1pf(expf(x));
    return rate * softplus;
}

}  // namespace kestrel::cuda
