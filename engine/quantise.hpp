// From f32 to every stored type, so that operators can be tested on each of them. Not what a model converter would use: q8_0 is ggml's,
// q4_1 and q6_k take the nearest level without searching for better scales.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/tensor_type.hpp"

namespace kestrel {

// The stored bytes of `values`, a whole number of the type's blocks. Values must be finite and, for the blocks' f16 scales, below 65504.
[[nodiscard]] std::vector<std::byte> quantise(TensorType type, std::span<const float> values);

}  // namespace kestrel
