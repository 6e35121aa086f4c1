// Tiles of q4_0 weights and split activations: every byte comes back, and what lanes read are the fragments that mma.m16n8k16 multiplies.
#include "engine/cuda/q4_tiles.hpp"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "engine/cuda/split.hpp"
#include "engine/tensor_type.hpp"

using namespace kestrel;
using namespace kestrel::cuda;

namespace {

struct Packed {
    std::vector<std::byte> nibbles;
    std::vector<std::byte> scales;
};

std::vector<std::byte> random_rows(std::size_t cols, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> stored(tile_rows * bytes_of(info_of(TensorType::q4_0), cols));
    for (std::byte& b : stored) b = static_cast<std::byte>(random() & 0xFFU);
    return stored;
}

Packed packed(std::size_t cols, const std::vector<std::byte>& stored) {
    const std::size_t tiles = cols / tile_cols;
    Packed p{std::vector<std::byte>(tiles * tile_nibble_bytes), std::vector<std::byte>(tiles * tile_scale_bytes)};
    pack_tiles(cols, stored.data(), p.nibbles.data(), p.scales.data());
    return p;
}

int level_of(const std::vector<std::byte>& stored, std::size_t cols, std::size_t row, std::size_t col) {
    const std::byte* block = &stored[(row * cols + col) / 32 * 18];
    const auto both = std::to_integer<int>(block[2 + col % 16]);
    return (col % 32 < 16 ? both & 15 : both >> 4) - 8;
}

float rounded_to_bf16(float x) {
    auto bits = std::bit_cast<std::uint32_t>(x);
    bits += 0x7FFFU + ((bits >> 16U) & 1U);
    return std::bit_cast<float>(bits & 0xFFFF0000U);
}

using Matrix16x16 = std::array<std::array<double, 16>, 16>;

}  // namespace

TEST_CASE("rows in tiles come back byte for byte", "[engine][layout]") {
    for (const std::size_t cols : {64U, 128U, 192U, 5120U}) {
        CAPTURE(cols);
        const std::vector<std::byte> stored = random_rows(cols, static_cast<unsigned>(cols));
        const Packed p = packed(cols, stored);
        CHECK(p.nibbles.size() + p.scales.size() == stored.size());
        std::vector<std::byte> back(stored.size(), std::byte{0xA5});
        unpack_tiles(cols, p.nibbles.data(), p.scales.data(), back.data());
        CHECK(back == stored);
    }
    CHECK_FALSE(has_tiles(8, 512));
    CHECK_FALSE(has_tiles(16, 448));
    CHECK_FALSE(has_tiles(0, 512));
    CHECK(has_tiles(32, 1536));
}

TEST_CASE("every tile has a number of its own, and groups below each other follow each other", "[engine][layout]") {
    constexpr std::size_t row_tiles = 5;
    constexpr std::size_t col_tiles = 24;
    std::vector<bool> taken(row_tiles * col_tiles);
    for (std::size_t row = 0; row < row_tiles; ++row) {
        for (std::size_t col = 0; col < col_tiles; ++col) {
            const std::size_t number = tile_number(row, col, row_tiles);
            REQUIRE_FALSE(taken.at(number));
            taken.at(number) = true;
        }
    }
    CHECK(tile_number(1, 0, row_tiles) == 8);
    CHECK(tile_number(0, 8, row_tiles) == row_tiles * 8);
    CHECK(tile_number(4, 23, row_tiles) == row_tiles * col_tiles - 1);
}

// The registers of PTX's fragments, read as the kernel reads them, multiplied in double: the exact product.
TEST_CASE("lanes read fragments whose product is the product", "[engine][layout]") {
    constexpr std::size_t cols = 192;
    const std::vector<std::byte> stored = random_rows(cols, 1);
    const Packed p = packed(cols, stored);
    std::mt19937 random(2);
    std::vector<float> x(cols);
    for (float& value : x) value = std::ldexp(static_cast<float>(random()) - 0x1p31F, static_cast<int>(random() % 40) - 50);
    std::vector<float> parts(split_floats(cols) * 2, NAN);  // as floats, one part each
    for (std::size_t c = 0; c < cols; ++c) {
        float rest = x[c];
        for (unsigned part = 0; part < split_parts; ++part) {
            float& to = parts.at(part_place(c, part));
            REQUIRE(std::isnan(to));
            to = rounded_to_bf16(rest);
            rest -= to;
        }
        REQUIRE(rest == 0.0F);
    }
    for (const float part : parts) REQUIRE_FALSE(std::isnan(part));

    std::array<double, tile_rows> product{};
    for (std::size_t tile = 0; tile < cols / tile_cols; ++tile) {
        for (unsigned step = 0; step < 4; ++step) {
            Matrix16x16 a{};
            std::array<std::array<double, split_parts>, 16> b{};
            for (unsigned lane = 0; lane < tile_lanes; ++lane) {
                const unsigned g = lane / 4;
                const unsigned t = lane % 4;
                std::uint32_t word = 0;
                std::memcpy(&word, &p.nibbles[tile * tile_nibble_bytes + lane * 16 + step * 4], 4);
                for (unsigned i = 0; i < 4; ++i) {
                    const std::uint32_t turned = std::rotr(word, static_cast<int>(4 * i));
                    for (unsigned half = 0; half < 2; ++half) {
                        const int n = static_cast<int>(turned >> (nibble_bit + 16 * half) & 15U);
                        a.at(g + 8 * (i % 2)).at(2 * t + half + 8 * (i / 2)) = n - 8;
                    }
                }
                if (g >= split_parts) continue;
                for (unsigned reg = 0; reg < 2; ++reg) {
                    // In units of a lane's wide load: 24 to a tile, 12 to a half, 4 to a part.
                    const std::size_t load = tile * 24 + step / 2 * 12 + g * 4 + t;
                    const std::size_t part = (load * 4 + step % 2 * 2 + reg) * 2;
                    b.at(2 * t + 8 * reg).at(g) = parts.at(part);
                    b.at(2 * t + 8 * reg + 1).at(g) = parts.at(part + 1);
                }
            }
            for (unsigned row = 0; row < tile_rows; ++row) {
                std::uint16_t d = 0;
                std::memcpy(&d, &p.scales[tile * tile_scale_bytes + std::size_t{2} * scale_place(row, step / 2)], 2);
                std::uint16_t stored_d = 0;
                std::memcpy(&stored_d, &stored[(row * cols + tile * tile_cols + step * 16) / 32 * 18], 2);
                REQUIRE(d == stored_d);
                for (unsigned k = 0; k < 16; ++k) {
                    const std::size_t col = tile * tile_cols + step * 16 + k;
                    REQUIRE(a.at(row).at(k) == level_of(stored, cols, row, col));
                    for (unsigned part = 0; part < split_parts; ++part) product.at(row) += a.at(row).at(k) * b.at(k).at(part);
                }
            }
        }
    }
    for (unsigned row = 0; row < tile_rows; ++row) {
        double expected = 0.0;
        double magnitude = 0.0;
        for (std::size_t c = 0; c < cols; ++c) {
            expected += double{x[c]} * level_of(stored, cols, row, c);
            magnitude += std::abs(double{x[c]} * level_of(stored, cols, row, c));
        }
        CHECK(std::abs(product.at(row) - expected) <= 0x1p-53 * 4 * cols * magnitude);
    }
}
