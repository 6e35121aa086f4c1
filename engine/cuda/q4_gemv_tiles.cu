#include "engine/cuda/q4_gemv_tiles.cuh"

#include "engine/cuda/check.hpp"
#include "engine/cuda/kernel_launch.cuh"

namespace kestrel::cuda {

inline TiledProducts tiled_products(std::span<const Product> products, std::size_t cols) {
    TiledProducts all{};
    std::size_t end = 0;
    for (std::size_t i = 0; i < most_products; ++i) {
        // Matrices that are not there begin after the last block.
        const Product& product = products[i < products.size() ? i : 0];
        const Matrix& m = product.m;
        require(m.type == TensorType::q4_0 && m.in_tiles() && m.cols == cols, "q4_gemv_tiles: matrices of whole tiles, all of one width");
        all.nibbles[i] = reinterpret_cast<const uint4*>(m.data);
        all.scales[i] = reinterpret_cast<const uint2*>(m.data + m.rows * m.cols / 2);
        all.y[i] = product.y;
        if (i < products.size()) end += m.rows / tile_rows;
        require(end < 0x7FFFFFFF, "q4_gemv_tiles: below 2^31 rows of tiles");
        all.end[i] = static_cast<unsigned>(end);
    }
    return all;
}

void launch_q4_gemv_tiles(std::span<const Product> products, const Activations& x, Store store, const Queue& queue) {
    require(!products.empty() && products.size() <= most_products, "q4_gemv_tiles: one to three matrices");
    require(x.parts != nullptr, "q4_gemv_tiles: x is split");
    const std::size_t cols = products[0].m.cols;
    const TiledProducts all = tiled_products(products, cols);
    const unsigned row_tiles = all.end[most_products - 1];
    launch("k_q4_gemv_tiles", k_q4_gemv_tiles<tiles_depth>, {blocks_for(row_tiles, 1), tiles_threads}, queue, all,
           reinterpret_cast<const uint4*>(x.parts), cols / tile_cols, store == Store::add);
}

bool gate_up_serves(const Matrix& gate, const Matrix& up) {
    return gate.type == TensorType::q4_0 && up.type == TensorType::q4_0 && gate.in_tiles() && up.in_tiles() && gate.rows == up.rows &&
           gate.cols == up.cols && can_split(gate.rows);
}

void launch_gate_up(const Matrix& gate, const Matrix& up, const Activations& x, float* y, float* y_parts, const Queue& queue) {
    require(gate_up_serves(gate, up), "gate_up: two matrices of one shape, in whole tiles, with whole sixty-fours of rows");
    require(x.parts != nullptr && y_parts != nullptr && x.parts != y_parts, "gate_up: x is split, y's parts lie elsewhere");
    const Product products[] = {{gate, y}, {up, y}};
    const TiledProducts both = tiled_products(products, gate.cols);
    launch("k_q4_gate_up_tiles", k_q4_gate_up_tiles<gate_up_depth>, {blocks_for(gate.rows / tile_rows, 1), tiles_threads}, queue, both,
           reinterpret_cast<const uint4*>(x.parts), gate.cols / tile_cols, parts_at(y_parts));
}

}  // namespace kestrel::cuda
