#include "engine/cuda/q6_tiles.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace kestrel::cuda {
namespace {

// Parts of ggml's q6_k block (engine/tensor_type.hpp), and where in it element e is.
constexpr std::size_t block_bytes = 210;
constexpr std::size_t high_at = 128;
constexpr std::size_t scales_at = 192;
constexpr std::size_t d_at = 208;

struct InBlock {
    explicit constexpr InBlock(unsigned e)
        : run(e % 128 / 32),
          low(e / 128 * 64 + 32 * (run % 2) + e % 32),
          low_shift(4 * (run / 2)),
          high(high_at + e / 128 * 32 + e % 32),
          high_shift(2 * run),
          scale(scales_at + e / 16) {}
    unsigned run;  // of 32 elements in a half
    std::size_t low;
    unsigned low_shift;
    std::size_t high;
    unsigned high_shift;
    std::size_t scale;
};

using LowWords = std::array<std::uint32_t, six_low_bytes / 4>;
using HighWords = std::array<std::uint32_t, six_high_bytes / 4>;

int bit_of(unsigned bit) {
    return static_cast<int>(bit);
}

std::size_t block_at(std::size_t cols, unsigned row, std::size_t group) {
    return (row * (cols / six_group_cols) + group) * block_bytes;
}

}  // namespace

void pack_six_tiles(std::size_t cols, const std::byte* stored, const SixPlanes& planes) {
    for (std::size_t tile = 0; tile < cols / tile_cols; ++tile) {
        LowWords low{};
        HighWords high{};
        for (unsigned row = 0; row < tile_rows; ++row) {
            const std::byte* block = stored + block_at(cols, row, tile / 4);
            for (unsigned col = 0; col < tile_cols; ++col) {
                const InBlock e(static_cast<unsigned>(tile % 4) * tile_cols + col);
                const SixPlace to = six_place(row, col);
                const std::uint32_t four = std::to_integer<std::uint32_t>(block[e.low]) >> e.low_shift & 0xFU;
                const std::uint32_t two = std::to_integer<std::uint32_t>(block[e.high]) >> e.high_shift & 3U;
                low[4 * to.lane + to.low_word] |= four << to.low_bit;
                high[2 * to.lane + to.high_word] |= std::rotl(two, bit_of(to.high_bit));
                planes.scales[tile * six_scale_bytes + six_scale_place(row, col / 16)] = block[e.scale];
            }
            std::memcpy(planes.d + tile / 4 * six_d_bytes + std::size_t{2} * six_d_place(row), block + d_at, 2);
        }
        std::memcpy(planes.low + tile * six_low_bytes, low.data(), six_low_bytes);
        std::memcpy(planes.high + tile * six_high_bytes, high.data(), six_high_bytes);
    }
}

void unpack_six_tiles(std::size_t cols, const SixPlanes& planes, std::byte* stored) {
    std::memset(stored, 0, tile_rows * cols / six_group_cols * block_bytes);
    for (std::size_t tile = 0; tile < cols / tile_cols; ++tile) {
        LowWords low{};
        HighWords high{};
        std::memcpy(low.data(), planes.low + tile * six_low_bytes, six_low_bytes);
        std::memcpy(high.data(), planes.high + tile * six_high_bytes, six_high_bytes);
        for (unsigned row = 0; row < tile_rows; ++row) {
            std::byte* block = stored + block_at(cols, row, tile / 4);
            for (unsigned col = 0; col < tile_cols; ++col) {
                const InBlock e(static_cast<unsigned>(tile % 4) * tile_cols + col);
                const SixPlace from = six_place(row, col);
                const std::uint32_t four = low[4 * from.lane + from.low_word] >> from.low_bit & 0xFU;
                const std::uint32_t two = std::rotr(high[2 * from.lane + from.high_word], bit_of(from.high_bit)) & 3U;
                block[e.low] |= static_cast<std::byte>(four << e.low_shift);
                block[e.high] |= static_cast<std::byte>(two << e.high_shift);
                block[e.scale] = planes.scales[tile * six_scale_bytes + six_scale_place(row, col / 16)];
            }
            std::memcpy(block + d_at, planes.d + tile / 4 * six_d_bytes + std::size_t{2} * six_d_place(row), 2);
        }
    }
}

}  // namespace kestrel::cuda
