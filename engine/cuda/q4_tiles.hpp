// How q4_0 matrices lie in device memory where k_q4_gemv_tiles multiplies them: in tiles that a warp reads with one wide load per lane,
// each lane getting just the weights that the tensor cores want from it.
//
// A matrix whose rows are whole sixteens and whose columns are whole five-hundred-and-twelves is all tiles of 16 x 64. Eight tiles beside
// each other are a group; groups below each other come first, so that blocks that multiply neighbouring rows at the same time read one
// stretch of memory together (tile_number). First 512 bytes of nibbles for each tile, then, behind all of them, 64 bytes of scales for
// each. As many bytes as in a file.
//   nibbles  32 lanes of four little-endian words. Lane 4 g + t holds rows g and g + 8. Word j holds columns 16 j to 16 j + 15; of those
//            2 t, 2 t + 1, 2 t + 8 and 2 t + 9. These are the A fragments of mma.m16n8k16 (PTX ISA, "Matrix Fragments for
//            mma.m16n8k16"): rotated right by 4 i bits, bits 3 to 6 and 19 to 22 of the word are the two halves of register i.
//   scales   f16, for g = 0 to 7: row g of columns 0 to 31 and of 32 to 63, then row g + 8 likewise
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/host_device.hpp"

namespace kestrel::cuda {

inline constexpr unsigned tile_rows = 16;
inline constexpr unsigned tile_cols = 64;
inline constexpr unsigned tile_lanes = 32;
inline constexpr unsigned tile_nibble_bytes = tile_rows * tile_cols / 2;
inline constexpr unsigned tile_scale_bytes = tile_rows * (tile_cols / 32) * 2;
// Where a nibble has to be in a bfloat16 to count ones when the exponent is that of 16: then the number is 16 + n, exactly.
inline constexpr unsigned nibble_bit = 3;

inline constexpr unsigned group_tiles = 8;
inline constexpr unsigned group_cols = group_tiles * tile_cols;

[[nodiscard]] constexpr bool has_tiles(std::size_t rows, std::size_t cols) noexcept {
    return rows > 0 && cols > 0 && rows % tile_rows == 0 && cols % group_cols == 0;
}

// Of the tile in `row_tile` and `col_tile` of a matrix with `row_tiles` rows of tiles.
KESTREL_HOST_DEVICE constexpr std::size_t tile_number(std::size_t row_tile, std::size_t col_tile, std::size_t row_tiles) noexcept {
    return (col_tile / group_tiles * row_tiles + row_tile) * group_tiles + col_tile % group_tiles;
}

// Of the weight in `row` and `col` of a tile: whose word, which, and the nibble's lowest bit in it (bits count modulo 32).
struct NibblePlace {
    unsigned lane;
    unsigned word;
    unsigned bit;
};
KESTREL_HOST_DEVICE constexpr NibblePlace nibble_place(unsigned row, unsigned col) noexcept {
    const unsigned in_step = col % 16;
    const unsigned fragment = row / 8 + 2 * (in_step / 8);
    return {4 * (row % 8) + in_step % 8 / 2, col / 16, (nibble_bit + 4 * fragment + 16 * (in_step % 2)) % 32};
}

// Of the scale of `row` and columns 32 `half` to 32 `half` + 31 of a tile: its number among the tile's 32.
KESTREL_HOST_DEVICE constexpr unsigned scale_place(unsigned row, unsigned half) noexcept {
    return 4 * (row % 8) + 2 * (row / 8) + half;
}

// One row of tiles: 16 rows of `cols` weights as in a file, to cols / 64 tiles' nibbles and scales, tile after tile; and back to the same
// bytes.
void pack_tiles(std::size_t cols, const std::byte* stored, std::byte* nibbles, std::byte* scales);
void unpack_tiles(std::size_t cols, const std::byte* nibbles, const std::byte* scales, std::byte* stored);

}  // namespace kestrel::cuda
