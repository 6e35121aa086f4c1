// ggml's tensor types by their numbers in files: the ones this engine reads, and the sizes of the others, so that a file with tensors
// that are not needed can still be checked. (Numbers and blocks: ggml.h and ggml-common.h of ggml-org/ggml, 2026-08.)
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/tensor_type.hpp"

namespace kestrel {

struct GgmlType {
    std::uint32_t number;
    std::string_view name;
    std::uint64_t block_elements;
    std::uint64_t block_bytes;
    std::optional<TensorType> ours;
};

// Null if no type has this number.
[[nodiscard]] const GgmlType* ggml_type(std::uint32_t number) noexcept;

}  // namespace kestrel
