// The launchers of one kind of matrix, behind launch_gemv and launch_embed.
#pragma once

#include "engine/cuda/launch.hpp"

namespace kestrel::cuda {

inline constexpr std::size_t most_products = 3;

// One launch for 1 to most_products q4_0 matrices in tiles, of one width; x is split.
void launch_q4_gemv_tiles(std::span<const Product> products, const Activations& x, Store store, const Queue& queue);

// q6_k in tiles; x is split.
void launch_q6_gemv_tiles(const Matrix& m, const Activations& x, float* y, Store store, const Queue& queue);
void launch_q6_embed_tiles(const Matrix& m, const Control* control, float* hidden, const Queue& queue);

}  // namespace kestrel::cuda
