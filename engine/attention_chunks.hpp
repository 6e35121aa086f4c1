// How a device splits attention: every block takes a chunk of positions, and what the chunks found is put together afterwards.
#pragma once

#include <cstdint>

namespace kestrel {

// Positions. Short enough that four key/value heads and a few thousand positions give every multiprocessor of a large device its work.
inline constexpr std::uint32_t attention_chunk = 64;

// Floats of scratch for one token: per chunk and query head a vector, the largest score and the sum of the weights.
[[nodiscard]] constexpr std::uint64_t attention_scratch_floats(std::uint64_t heads, std::uint64_t dim, std::uint64_t capacity) {
    return (capacity + attention_chunk - 1) / attention_chunk * heads * (dim + 2);
}

}  // namespace kestrel
