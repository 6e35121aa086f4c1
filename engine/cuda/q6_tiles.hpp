// How q6_k matrices lie in device memory where k_q6_gemv_tiles multiplies them: in tiles of 16 x 64, for the same matrices and in the same
// order as q4_tiles.hpp says.
//
// Four planes, one behind the other; as many bytes as in a file:
//   low     512 bytes a tile, 32 lanes of four words: fragments as of q4_0, but rotated right by 4 i bits, bits 0 to 3 and 16 to 19 of word
//   j
//           are the low four bits of the two halves of register i of step j
//   high    256 bytes a tile, 32 lanes of two words for two steps each: rotated right by 2 i + 8 (j mod 2) bits, bits 4 and 5 and bits 20
//           and 21 are their high two bits
//   scales  64 bytes a tile, for g = 0 to 7: row g of the four steps, then row g + 8; signed bytes
//   d       32 bytes for four tiles, f16, for g = 0 to 7: row g, then row g + 8
#pragma once

#include <cstddef>

#include "engine/cuda/q4_tiles.hpp"

namespace kestrel::cuda {

inline constexpr unsigned six_group_cols = 256;
inline constexpr unsigned six_low_bytes = 512;
inline constexpr unsigned six_high_bytes = 256;
inline constexpr unsigned six_scale_bytes = 64;
inline constexpr unsigned six_d_bytes = 32;  // of four tiles

// Of the weight in `row` and `col` of a tile: whose words, which, and the lowest of its bits in each (bits count modulo 32).
struct SixPlace {
    unsigned lane;
    unsigned low_word;
    unsigned low_bit;
    unsigned high_word;
    unsigned high_bit;
};
KESTREL_HOST_DEVICE constexpr SixPlace six_place(unsigned row, unsigned col) noexcept {
    const unsigned step = col / 16;
    const unsigned in_step = col % 16;
    const unsigned fragment = row / 8 + 2 * (in_step / 8);
    const unsigned half = in_step % 2;
    return {4 * (row % 8) + in_step % 8 / 2, step, 4 * fragment + 16 * half, step / 2,
            (4 + 2 * fragment + 8 * (step % 2) + 16 * half) % 32};
}

// Numbers of the scale of `row` and step `step` among a tile's 64, and of the d of `row` among four tiles' 16.
KESTREL_HOST_DEVICE constexpr unsigned six_scale_place(unsigned row, unsigned step) noexcept {
    return 8 * (row % 8) + 4 * (row / 8) + step;
}
KESTREL_HOST_DEVICE constexpr unsigned six_d_place(unsigned row) noexcept {
    return 2 * (row % 8) + row / 8;
}

// One row of tiles: 16 rows of `cols` weights as in a file, to its part of each plane, tile after tile; and back to the same bytes.
struct SixPlanes {
    std::byte* low;
    std::byte* high;
    std::byte* scales;
    std::byte* d;
};
void pack_six_tiles(std::size_t cols, const std::byte* stored, const SixPlanes& planes);
void unpack_six_tiles(std::size_t cols, const SixPlanes& planes, std::byte* stored);

}  // namespace kestrel::cuda
