// Weights between a host block (WeightLayout) and device memory: same offsets, same bytes in all. Matrices of whole tiles lie as
// q4_tiles.hpp and q6_tiles.hpp say, everything else as planes.hpp does.
#pragma once

#include "engine/backend.hpp"
#include "engine/tensor_type.hpp"

namespace kestrel::cuda {

extern const WeightArrangement device_arrangement;

// One matrix, or [1][n] for anything else, from a file's order on the host to its arrangement on the device.
void put_tensor(TensorType type, std::uint64_t rows, std::uint64_t cols, const std::byte* host, std::byte* device);

}  // namespace kestrel::cuda
