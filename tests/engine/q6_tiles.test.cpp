// Tiles of q6_k weights: every byte comes back, and what lanes read are the fragments that mma.m16n8k16 multiplies (see q4_tiles.test.cpp).
#include "engine/cuda/q6_tiles.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "engine/cuda/tile_formats.hpp"
#include "engine/tensor_type.hpp"

using namespace kestrel;
using namespace kestrel::cuda;

namespace {

std::vector<std::byte> random_rows(TensorType type, std::size_t cols) {
    std::mt19937 random(static_cast<unsigned>(cols));
    std::vector<std::byte> stored(tile_rows * bytes_of(info_of(type), cols));
    for (std::byte& b : stored) b = static_cast<std::byte>(random() & 0xFFU);
    return stored;
}

// One row of tiles in planes of its own.
struct PackedRow {
    PackedRow(TensorType type, std::size_t cols) {
        const auto bytes = tile_format_of(type)->plane_bytes(cols);
        for (std::size_t p = 0; p < most_tile_planes; ++p) {
            memory.at(p).assign(bytes.at(p), std::byte{0xA5});
            planes.at(p) = memory.at(p).data();
        }
    }
    std::array<std::vector<std::byte>, most_tile_planes> memory;
    std::array<std::byte*, most_tile_planes> planes{};
};

std::uint32_t word_at(const std::byte* plane, std::size_t index) {
    std::uint32_t word = 0;
    std::memcpy(&word, plane + 4 * index, 4);
    return word;
}

}  // namespace

TEST_CASE("rows of every type that lies in tiles come back byte for byte", "[engine][layout]") {
    for (const TensorType type : {TensorType::q4_0, TensorType::q6_k}) {
        for (const std::size_t cols : {512U, 1024U, 1536U, 5120U}) {
            CAPTURE(info_of(type).name, cols);
            REQUIRE(lies_in_tiles(type, 16, cols));
            const std::vector<std::byte> stored = random_rows(type, cols);
            PackedRow row(type, cols);
            tile_format_of(type)->pack(cols, stored.data(), row.planes);
            std::size_t bytes = 0;
            for (const auto& plane : row.memory) bytes += plane.size();
            CHECK(bytes == stored.size());
            std::vector<std::byte> back(stored.size(), std::byte{0x5A});
            tile_format_of(type)->unpack(cols, row.planes, back.data());
            CHECK(back == stored);
        }
    }
    CHECK_FALSE(lies_in_tiles(TensorType::q6_k, 16, 256));
    CHECK_FALSE(lies_in_tiles(TensorType::q6_k, 24, 512));
    CHECK_FALSE(lies_in_tiles(TensorType::q8_0, 16, 512));
}

TEST_CASE("lanes read q6_k fragments and scales that make the weights", "[engine][layout]") {
    constexpr std::size_t cols = 512;
    std::vector<std::byte> stored = random_rows(TensorType::q6_k, cols);
    constexpr std::size_t block_bytes = 210;
    for (std::size_t block = 0; block < tile_rows * cols / 256; ++block) {
        const std::uint16_t one = f16_bits(0.25F + static_cast<float>(block));  // finite, and each its own
        std::memcpy(&stored[block * block_bytes + 208], &one, 2);
    }
    std::vector<float> weights(tile_rows * cols);
    dequantise(TensorType::q6_k, stored.data(), weights);
    PackedRow packed(TensorType::q6_k, cols);
    tile_format_of(TensorType::q6_k)->pack(cols, stored.data(), packed.planes);
    for (std::size_t tile = 0; tile < cols / tile_cols; ++tile) {
        for (unsigned lane = 0; lane < tile_lanes; ++lane) {
            const unsigned g = lane / 4;
            const unsigned t = lane % 4;
            for (unsigned step = 0; step < 4; ++step) {
                const std::uint32_t low = word_at(packed.planes[0], (tile * tile_lanes + lane) * 4 + step);
                const std::uint32_t high = word_at(packed.planes[1], (tile * tile_lanes + lane) * 2 + step / 2);
                for (unsigned i = 0; i < 4; ++i) {
                    const std::uint32_t four = low >> (4 * i);
                    const std::uint32_t two = std::rotr(high, static_cast<int>(2 * i + 8 * (step % 2)));
                    const unsigned row = g + 8 * (i % 2);
                    // A lane's scales: four bytes of row g, then four of row g + 8; its d likewise.
                    const auto scale = std::to_integer<std::int8_t>(packed.planes[2][tile * 64 + 8 * g + 4 * (i % 2) + step]);
                    std::uint16_t d = 0;
                    std::memcpy(&d, packed.planes[3] + tile / 4 * 32 + 4 * g + 2 * (i % 2), 2);
                    for (unsigned half = 0; half < 2; ++half) {
                        const std::uint32_t n = (four >> (16 * half) & 0xFU) | (two >> (16 * half) & 0x30U);
                        const std::size_t col = tile * tile_cols + step * 16 + 2 * t + half + 8 * (i / 2);
                        const float weight = f16_value(d) * static_cast<float>(scale) * (static_cast<float>(n) - 32.0F);
                        REQUIRE(weight == weights[row * cols + col]);
                    }
                }
            }
        }
    }
}
