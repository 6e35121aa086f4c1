// A vector of f32 activations as tensor cores take it without loss: every element is the sum of three bfloat16 parts (8 + 8 + 8 bits of
// significand), which are three columns of the right-hand matrix.
//
// For 64 columns, as many words of two parts as the four steps of mma.m16n8k16 want (PTX ISA, its B fragments): for both halves of 32
// columns, for each of the three parts, for t = 0 to 3, the four registers of lanes with that t: columns 2 t and 2 t + 1 of the first 16,
// then 2 t + 8 and 2 t + 9, then the same of the second 16. So a lane reads a half's in one wide load.
#pragma once

#include <cstddef>

#include "engine/cuda/host_device.hpp"

namespace kestrel::cuda {

inline constexpr unsigned split_parts = 3;
inline constexpr unsigned split_cols = 64;  // a split vector's length is a multiple
inline constexpr unsigned split_words = split_cols / 2 * split_parts;

[[nodiscard]] constexpr bool can_split(std::size_t n) noexcept {
    return n > 0 && n % split_cols == 0;
}
// Floats of memory that the parts of n elements take, rounded up to whole sixty-fours of elements.
[[nodiscard]] constexpr std::size_t split_floats(std::size_t n) noexcept {
    return (n + split_cols - 1) / split_cols * split_words;
}

// Number of part `part` of column `col` among all parts of the vector, 16 bits each.
KESTREL_HOST_DEVICE constexpr std::size_t part_place(std::size_t col, unsigned part) noexcept {
    const auto in_tile = static_cast<unsigned>(col % split_cols);
    const unsigned half = in_tile / 32;
    const unsigned in_step = in_tile % 16;
    const unsigned reg = in_tile % 32 / 16 * 2 + in_step / 8;
    const unsigned t = in_step % 8 / 2;
    const unsigned word = ((half * split_parts + part) * 4 + t) * 4 + reg;
    return (col / split_cols * split_words + word) * 2 + in_step % 2;
}

}  // namespace kestrel::cuda
