// Tensors of a described model (engine/synthetic.hpp), made on the device instead of sent there.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "engine/weights.hpp"

namespace kestrel::cuda {

// Enqueues the writing of tensor `number` of a layout, from 0, of the model with this seed: tensor.bytes() to `out`, device memory aligned
// to 4 bytes, the very bytes that the host writes to the tensor's place in a block. tensor.offset is not read. Throws EngineError.
void make_synthetic_tensor(std::uint64_t seed, std::uint64_t number, const TensorSpec& tensor, std::byte* out, cudaStream_t stream);

}  // namespace kestrel::cuda
