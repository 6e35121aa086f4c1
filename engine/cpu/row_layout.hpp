// How the CPU engine holds quantised rows: a ggml row's bytes, as many and at the same place, but with the scales of all its blocks first
// and the numbers behind them, in an order in which sixteen columns come out of one register with few instructions. A row of n columns:
//   q4_0  f16 d of each block | nibbles
//   q4_1  f16 d of each block | f16 m of each | nibbles
//   q8_0  f16 d of each block | signed bytes in the order of columns
//   q6_k  f16 d of each block | 16 scales of each | 192 bytes of codes for each 256 columns
// Nibbles: a line of 16 little-endian words of 32 bits holds 128 columns; bits 4 k to 4 k + 3 of word j are column 16 k + j, k < 8. Blocks
// beyond the last whole 128 columns have their 16 bytes as ggml has them.
// Codes: three such lines; bits 2 + 6 c to 7 + 6 c of word j of line l are column 16 (5 l + c) + j, c < 5; bits 0 and 1 are bits 2 l and
// 2 l + 1 of column 240 + j.
// The other types' rows are as in a file.
#pragma once

#include <cstddef>

#include "engine/tensor_type.hpp"

namespace kestrel::cpu {

// A matrix as kernels read it: rows as arrange_row leaves them, one after the other. A view; the bytes belong to somebody else. Kernels
// read up to `overrun` bytes behind the last row, whatever they are.
struct ArrangedMatrix {
    const std::byte* data = nullptr;
    TensorType type = TensorType::f32;
};
inline constexpr std::size_t overrun = 3;

// From a row of `cols` columns as tensor_type.hpp says; `row` takes as many bytes and does not overlap it.
void arrange_row(TensorType type, std::size_t cols, const std::byte* stored, std::byte* row);

// Blocks first to first + count of an arranged row, as tensor_type.hpp says.
void restore_blocks(TensorType type, std::size_t cols, const std::byte* row, std::size_t first, std::size_t count, std::byte* stored);

}  // namespace kestrel::cpu
