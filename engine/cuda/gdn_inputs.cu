#include "engine/cuda/gdn_inputs.cuh"
#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

// The heads of q, then those of k, a block each: convolved, then k_l2_norm's sum by k_l2_norm's threads. Then blocks for the channels of v,
// then for the gates.
__global__ void k_gdn_inputs(GdnInputs in) {
    extern __shared__ float convolved[];  // [kd]
    const unsigned rows = 2 * in.k_heads;
    const unsigned values = in.heads * in.vd;
    const unsigned channels = rows * in.kd + values;
    if (blockIdx.x < rows) {
        const unsigned first = blockIdx.x * in.kd;
        float sum = 0.0F;
        for (unsigned i = threadIdx.x; i < in.kd; i += blockDim.x) {
            const unsigned c = first + i;
            const float x = conv_silu(in.conv_state + c, in.conv + c, in.mixed[c], channels, in.taps);
            convolved[i] = x;  // read by this thread only
            sum += x * x;
        }
        const float factor = 1.0F / sqrtf(block_sum(sum) + 1e-6F);
        const float extra = blockIdx.x < in.k_heads ? in.q_scale : 1.0F;
        for (unsigned i = threadIdx.x; i < in.kd; i += blockDim.x) in.mixed[first + i] = convolved[i] * factor * extra;
        return;
    }
    const unsigned i = (blockIdx.x - rows) * blockDim.x + threadIdx.x;
    const unsigned covered = (values + blockDim.x - 1) / blockDim.x * blockDim.x;  // by the blocks for v
    if (i < values) {
        const unsigned c = rows * in.kd + i;
        in.mixed[c] = conv_silu(in.conv_state + c, in.conv + c, in.mixed[c], channels, in.taps);
    } else if (i >= covered && i - covered < in.heads) {
        const unsigned h = i - covered;
        const float b = in.beta[h];
        in.g[h] = gdn_log_decay(in.g[h], in.rate[h], in.dt_bias[h]);
        in.beta[h] = sigmoid(b);
    }
}

void launch_gdn_inputs(const GdnInputs& in, cudaStream_t stream) {
    constexpr unsigned most_threads = 128;   // as k_l2_norm's for a head
    constexpr unsigned most_key_dim = 6144;  // as k_gdn_delta's
    require(in.heads > 0 && in.k_heads > 0 && in.kd > 0 && in.kd <= most_key_dim && in.vd > 0 && in.taps > 0,
            "gdn_inputs: positive dimensions, key dimension up to 6144");
    const std::size_t rows = std::size_t{2} * in.k_heads;
    const std::size_t values = std::size_t{in.heads} * in.vd;
    require(rows * in.kd + values <= 0x7FFFFFFF / in.taps, "gdn_inputs: channels times taps below 2^31");
    const unsigned threads = in.kd >= most_threads ? most_threads : blocks_for(in.kd, warp_lanes) * warp_lanes;
    const std::size_t blocks = rows + blocks_for(values, threads) + blocks_for(in.heads, threads);
    k_gdn_inputs<<<blocks_for(blocks, 1), threads, in.kd * sizeof(float), stream>>>(in);
    check_launch("k_gdn_inputs");
}

}  // namespace kestrel::cuda
