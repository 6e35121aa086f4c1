// Which matrices lie in tiles on a device, and how a row of tiles is packed.
#pragma once

#include <array>
#include <cstddef>

#include "engine/tensor_type.hpp"

namespace kestrel::cuda {

inline constexpr std::size_t most_tile_planes = 4;

// Of one type: planes one behind the other, in each tile after tile in the order of tile_number.
struct TileFormat {
    // Bytes of one row of tiles in each plane; 0: there is no such plane. Together as many as its rows take in a file.
    std::array<std::size_t, most_tile_planes> (*plane_bytes)(std::size_t cols);
    // 16 rows of `cols` weights as in a file, to each plane's part, and back to the same bytes.
    void (*pack)(std::size_t cols, const std::byte* stored, const std::array<std::byte*, most_tile_planes>& planes);
    void (*unpack)(std::size_t cols, const std::array<std::byte*, most_tile_planes>& planes, std::byte* stored);
};

// Null for types that never lie in tiles.
[[nodiscard]] const TileFormat* tile_format_of(TensorType type) noexcept;

[[nodiscard]] bool lies_in_tiles(TensorType type, std::size_t rows, std::size_t cols) noexcept;

}  // namespace kestrel::cuda
