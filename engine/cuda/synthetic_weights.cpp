#include "engine/cuda/synthetic_weights.hpp"

#include "engine/cuda/launch.hpp"
#include "engine/synthetic.hpp"

namespace kestrel::cuda {

void make_synthetic_tensor(std::uint64_t seed, std::uint64_t number, const TensorSpec& tensor, std::byte* out, cudaStream_t stream) {
    const SyntheticTensor values = synthetic_tensor(seed, number, tensor);
    // conv1d.weight, [channels, 1, taps], is held as [taps][channels]; vectors are one row.
    const bool transposed = tensor.role == Role::conv;
    const std::uint64_t cols = tensor.shape.back();
    launch_synthetic({.key = values.key, .levels = values.levels, .centre = values.centre, .unit = values.unit()}, tensor.type,
                     tensor.elements() / cols, cols, transposed, out, stream);
}

}  // namespace kestrel::cuda
