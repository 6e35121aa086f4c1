// A tensor as a file holds it: what the readers of the formats give to file_model.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/tensor_type.hpp"

namespace kestrel {

struct FileTensor {
    std::string where;                 // FILE: tensor "NAME"
    std::string type_name;             // as the format calls it, "BF16"
    std::optional<TensorType> type;    // nothing: a type that the format knows and this engine does not read
    std::vector<std::uint64_t> shape;  // row-major, the last extent the fastest
    std::span<const std::byte> bytes;  // in the mapped file; as many as type and shape say
};

// By the file's own names.
using TensorTable = std::map<std::string, FileTensor, std::less<>>;

// Throws EngineError (KESTREL_BAD_MODEL) naming both tensors if the bytes of two overlap.
void check_overlap(const TensorTable& table);

}  // namespace kestrel
