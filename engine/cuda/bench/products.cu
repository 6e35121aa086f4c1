#include <cstdio>

#include "engine/cuda/bench/bench.hpp"
#include "engine/cuda/launch.hpp"
#include "engine/cuda/q4_gemv_tiles.cuh"

namespace kestrel::cuda::bench {

constexpr std::size_t rotation_bytes = std::size_t{1} << 30U;  // many times any L2 cache
constexpr int passes = 15;

struct Shape {
    const char* name;
    std::size_t rows;
    std::size_t cols;
};

// Copies of one matrix, so that none is in a cache when its turn comes.
struct Rotation {
    explicit Rotation(const Shape& s)
        : shape(s),
          bytes(s.rows * s.cols / 32 * 18),
          copies((rotation_bytes + bytes - 1) / bytes),
          memory(make_buffer<std::byte>(copies * bytes)),
          x(make_buffer<float>(s.cols)),
          parts(make_buffer<float>(split_floats(s.cols))),
          y(make_buffer<float>(s.rows)) {
        check(cudaMemset(memory.get(), 0x33, memory.bytes()), "filling matrices");  // scales of 0.2
        check(cudaMemset(x.get(), 0, x.bytes()), "filling a vector");
        check(cudaMemset(parts.get(), 0, parts.bytes()), "filling a vector");
        check(cudaMemset(y.get(), 0, y.bytes()), "filling a vector");
        check(cudaDeviceSynchronize(), "filling matrices");
    }
    [[nodiscard]] Matrix matrix(std::size_t copy) const { return {memory.get() + copy * bytes, TensorType::q4_0, shape.rows, shape.cols}; }
    // Of one product, from a graph of one for each copy.
    template <class Launch>
    [[nodiscard]] double us(const Launch& launch) const {
        return graph_us(
                   [&](cudaStream_t stream) {
                       for (std::size_t copy = 0; copy < copies; ++copy) launch(matrix(copy), stream);
                   },
                   passes) /
               static_cast<double>(copies);
    }
    Shape shape;
    std::size_t bytes;
    std::size_t copies;
    Buffer<std::byte> memory;
    Buffer<float> x;
    Buffer<float> parts;
    Buffer<float> y;
};

template <unsigned Depth>
void print_one(const Rotation& rotation, double bandwidth) {
    const double us = rotation.us([&](const Matrix& m, cudaStream_t stream) {
        const auto tiles = static_cast<unsigned>(m.rows / tile_rows);
        TiledProducts all{};
        for (std::size_t i = 0; i < most_products; ++i) {
            all.nibbles[i] = reinterpret_cast<const uint4*>(m.data);
            all.scales[i] = reinterpret_cast<const uint2*>(m.data + m.rows * m.cols / 2);
            all.y[i] = rotation.y.get();
            all.end[i] = tiles;
        }
        launch("k_q4_gemv_tiles", k_q4_gemv_tiles<Depth>, {tiles, tiles_threads}, stream, all,
               reinterpret_cast<const uint4*>(rotation.parts.get()), m.cols / tile_cols, false);
    });
    const double rate = static_cast<double>(rotation.bytes) / us * 1e6;
    std::printf("    %u tiles ahead %s %7.2f us  %5.2f TB/s  %4.1f %% of reading\n", Depth, Depth == tiles_depth ? "(engine)" : "        ",
                us, rate / 1e12, 100.0 * rate / bandwidth);
}

void print_products(double bandwidth) {
    const Shape shapes[] = {{"gate and up", 34816, 5120},
                            {"down", 5120, 17408},
                            {"qkv and z", 16384, 5120},
                            {"gdn out", 5120, 6144},
                            {"attention q, k, v", 14336, 5120}};
    for (const Shape& shape : shapes) {
        const Rotation rotation(shape);
        std::printf("  %s, %zu x %zu: floor %.2f us\n", shape.name, shape.rows, shape.cols,
                    static_cast<double>(rotation.bytes) / bandwidth * 1e6);
        print_one<2>(rotation, bandwidth);
        print_one<3>(rotation, bandwidth);
        print_one<4>(rotation, bandwidth);
    }
}

}  // namespace kestrel::cuda::bench
