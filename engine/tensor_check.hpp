// Are stored values usable?
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/tensor_type.hpp"

namespace kestrel {

// Index of the first element that is NaN or infinite, or of the first element of the first quantised block whose scale is. `elements` is a
// whole number of blocks; the bytes need not be aligned.
[[nodiscard]] std::optional<std::uint64_t> first_not_finite(TensorType type, const std::byte* stored, std::uint64_t elements) noexcept;

}  // namespace kestrel
