// Weights between a host block (WeightLayout) and device memory (planes.hpp): same offsets, same bytes in all, blocks taken apart.
#pragma once

#include "engine/backend.hpp"
#include "engine/tensor_type.hpp"

namespace kestrel::cuda {

extern const WeightArrangement plane_arrangement;

// One tensor of `bytes`, whole blocks, from a file's order on the host to planes on the device.
void put_tensor(TensorType type, std::uint64_t bytes, const std::byte* host, std::byte* device);

}  // namespace kestrel::cuda
