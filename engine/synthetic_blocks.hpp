// Matrices of fifteen levels, exact in every stored type.
#pragma once

#include <cstddef>

#include "engine/tensor_type.hpp"

namespace kestrel {

// One block of `type` (info_of(type).block_elements levels) whose elements are levels[i] 2^-shift, levels from -7 to 7, shift from 0 to 14.
void pack_levels(TensorType type, const int* levels, int shift, std::byte* out) noexcept;

}  // namespace kestrel
