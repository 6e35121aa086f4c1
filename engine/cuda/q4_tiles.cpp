#include "engine/cuda/q4_tiles.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace kestrel::cuda {
namespace {

constexpr std::size_t block_bytes = 18;  // of ggml's q4_0
constexpr std::size_t block_cols = 32;

using TileWords = std::array<std::uint32_t, std::size_t{tile_lanes} * 4>;

// visit(row, half, block) for the 32 blocks of tile `tile` of a row of tiles.
template <class Byte, class Visit>
void for_each_block(std::size_t cols, std::size_t tile, Byte* stored, const Visit& visit) {
    const std::size_t row_bytes = cols / block_cols * block_bytes;
    for (unsigned row = 0; row < tile_rows; ++row) {
        for (unsigned half = 0; half < tile_cols / block_cols; ++half) {
            visit(row, half, stored + row * row_bytes + (2 * tile + half) * block_bytes);
        }
    }
}

// Byte j of a block holds columns j and j + 16.
constexpr NibblePlace place_in_block(unsigned row, unsigned half, unsigned column) {
    return nibble_place(row, half * static_cast<unsigned>(block_cols) + column);
}

}  // namespace

void pack_tiles(std::size_t cols, const std::byte* stored, std::byte* nibbles, std::byte* scales) {
    for (std::size_t tile = 0; tile < cols / tile_cols; ++tile) {
        TileWords words{};
        for_each_block(cols, tile, stored, [&](unsigned row, unsigned half, const std::byte* block) {
            std::memcpy(scales + tile * tile_scale_bytes + std::size_t{2} * scale_place(row, half), block, 2);
            for (unsigned j = 0; j < 16; ++j) {
                const auto both = std::to_integer<std::uint32_t>(block[2 + j]);
                const NibblePlace low = place_in_block(row, half, j);
                const NibblePlace high = place_in_block(row, half, j + 16);
                words[4 * low.lane + low.word] |= std::rotl(both & 0xFU, static_cast<int>(low.bit));
                words[4 * high.lane + high.word] |= std::rotl(both >> 4U, static_cast<int>(high.bit));
            }
        });
        std::memcpy(nibbles + tile * tile_nibble_bytes, words.data(), tile_nibble_bytes);
    }
}

void unpack_tiles(std::size_t cols, const std::byte* nibbles, const std::byte* scales, std::byte* stored) {
    for (std::size_t tile = 0; tile < cols / tile_cols; ++tile) {
        TileWords words{};
        std::memcpy(words.data(), nibbles + tile * tile_nibble_bytes, tile_nibble_bytes);
        for_each_block(cols, tile, stored, [&](unsigned row, unsigned half, std::byte* block) {
            std::memcpy(block, scales + tile * tile_scale_bytes + std::size_t{2} * scale_place(row, half), 2);
            for (unsigned j = 0; j < 16; ++j) {
                const NibblePlace low = place_in_block(row, half, j);
                const NibblePlace high = place_in_block(row, half, j + 16);
                const std::uint32_t n = std::rotr(words[4 * low.lane + low.word], static_cast<int>(low.bit)) & 0xFU;
                const std::uint32_t m = std::rotr(words[4 * high.lane + high.word], static_cast<int>(high.bit)) & 0xFU;
                block[2 + j] = static_cast<std::byte>(n | m << 4U);
            }
        });
    }
}

}  // namespace kestrel::cuda
