#include "engine/cuda/tile_formats.hpp"

#include "engine/cuda/q4_tiles.hpp"
#include "engine/cuda/q6_tiles.hpp"

namespace kestrel::cuda {
namespace {

using Sizes = std::array<std::size_t, most_tile_planes>;
using Planes = std::array<std::byte*, most_tile_planes>;

constexpr TileFormat q4_format{
    .plane_bytes = [](std::size_t cols) -> Sizes {
        const std::size_t tiles = cols / tile_cols;
        return {tiles * tile_nibble_bytes, tiles * tile_scale_bytes, 0, 0};
    },
    .pack = [](std::size_t cols, const std::byte* stored, const Planes& planes) { pack_tiles(cols, stored, planes[0], planes[1]); },
    .unpack = [](std::size_t cols, const Planes& planes, std::byte* stored) { unpack_tiles(cols, planes[0], planes[1], stored); },
};

constexpr TileFormat q6_format{
    .plane_bytes = [](std::size_t cols) -> Sizes {
        const std::size_t tiles = cols / tile_cols;
        return {tiles * six_low_bytes, tiles * six_high_bytes, tiles * six_scale_bytes, tiles / 4 * six_d_bytes};
    },
    .pack =
        [](std::size_t cols, const std::byte* stored, const Planes& planes) {
            pack_six_tiles(cols, stored, {planes[0], planes[1], planes[2], planes[3]});
        },
    .unpack =
        [](std::size_t cols, const Planes& planes, std::byte* stored) {
            unpack_six_tiles(cols, {planes[0], planes[1], planes[2], planes[3]}, stored);
        },
};

}  // namespace

const TileFormat* tile_format_of(TensorType type) noexcept {
    if (type == TensorType::q4_0) return &q4_format;
    return type == TensorType::q6_k ? &q6_format : nullptr;
}

bool lies_in_tiles(TensorType type, std::size_t rows, std::size_t cols) noexcept {
    return tile_format_of(type) != nullptr && has_tiles(rows, cols);
}

}  // namespace kestrel::cuda
