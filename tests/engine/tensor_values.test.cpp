// Stored numbers: halves against their definition, blocks against bytes worked out by hand, and what quantising promises.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "engine/tensor_type.hpp"

using namespace kestrel;

namespace {

template <std::size_t Count>
std::vector<float> dequantised(TensorType type, const std::array<std::uint8_t, Count>& bytes, std::size_t elements) {
    REQUIRE(Count == bytes_of(info_of(type), elements));
    std::vector<float> values(elements);
    dequantise(type, reinterpret_cast<const std::byte*>(bytes.data()), values);
    return values;
}

std::vector<std::uint8_t> quantised(const std::vector<float>& values) {
    std::vector<std::uint8_t> bytes(bytes_of(info_of(TensorType::q4_0), values.size()));
    quantise_q4_0(values, reinterpret_cast<std::byte*>(bytes.data()));
    return bytes;
}

std::vector<float> from_q4_0(const std::vector<std::uint8_t>& bytes) {
    std::vector<float> values(bytes.size() / 18 * 32);
    dequantise(TensorType::q4_0, reinterpret_cast<const std::byte*>(bytes.data()), values);
    return values;
}

std::uint16_t scale_bits(const std::vector<std::uint8_t>& block) {
    return static_cast<std::uint16_t>(block[0] | block[1] << 8);
}

}  // namespace

TEST_CASE("every half has the value of its definition and survives the round trip", "[engine][tensor]") {
    for (unsigned bits = 0; bits < 0x10000U; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const int exponent = static_cast<int>(bits >> 10U & 0x1FU);
        const int fraction = static_cast<int>(bits & 0x3FFU);
        const float value = f16_value(half);
        CAPTURE(bits);
        if (exponent == 31 && fraction != 0) {
            REQUIRE(std::isnan(value));
            REQUIRE(std::isnan(f16_value(f16_bits(value))));
            continue;
        }
        double expected = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
        if (exponent == 31) expected = std::numeric_limits<double>::infinity();
        REQUIRE(std::fabs(double{value}) == expected);
        REQUIRE(std::signbit(value) == (bits >= 0x8000U));
        REQUIRE(f16_bits(value) == half);
    }
}

// The middle between two neighbours goes to the even one, anything beside it to the nearer one; the first value after the largest half
// counts as 65536, as if there were no end.
TEST_CASE("halves are rounded to nearest, ties to even", "[engine][tensor]") {
    for (unsigned bits = 0; bits <= 0x7BFFU; ++bits) {
        const float low = f16_value(static_cast<std::uint16_t>(bits));
        const float high = bits == 0x7BFFU ? 65536.0F : f16_value(static_cast<std::uint16_t>(bits + 1));
        const float middle = (low + high) / 2;
        CAPTURE(bits);
        REQUIRE(f16_bits(middle) == bits + (bits & 1U));
        REQUIRE(f16_bits(std::nextafter(middle, 0.0F)) == bits);
        REQUIRE(f16_bits(std::nextafter(middle, 1e9F)) == bits + 1);
        REQUIRE(f16_bits(-middle) == (0x8000U | (bits + (bits & 1U))));
    }
    CHECK(f16_bits(3e38F) == 0x7C00U);
    CHECK(f16_bits(1e-30F) == 0U);
}

TEST_CASE("plain types by hand", "[engine][tensor]") {
    // Little-endian: 1.0F is 0x3F800000, -2 as a half 0xC000, 1.5 as a bfloat16 0x3FC0.
    CHECK(dequantised(TensorType::f32, std::array<std::uint8_t, 4>{0x00, 0x00, 0x80, 0x3F}, 1) == std::vector<float>{1.0F});
    CHECK(dequantised(TensorType::f16, std::array<std::uint8_t, 4>{0x00, 0xC0, 0x01, 0x00}, 2) == std::vector<float>{-2.0F, 0x1p-24F});
    CHECK(dequantised(TensorType::bf16, std::array<std::uint8_t, 4>{0xC0, 0x3F, 0x80, 0xBF}, 2) == std::vector<float>{1.5F, -1.0F});
}

TEST_CASE("blocks by hand", "[engine][tensor]") {
    SECTION("q4_0") {
        std::array<std::uint8_t, 18> block{0x00, 0x38};  // d = 0.5
        block[2] = 0x1F;                                 // elements 0 and 16: 15 and 1
        block[17] = 0x8C;                                // elements 15 and 31: 12 and 8
        const auto values = dequantised(TensorType::q4_0, block, 32);
        CHECK(values[0] == 3.5F);
        CHECK(values[16] == -3.5F);
        CHECK(values[15] == 2.0F);
        CHECK(values[31] == 0.0F);
        CHECK(values[1] == -4.0F);
    }
    SECTION("q4_1") {
        std::array<std::uint8_t, 20> block{0x00, 0x38, 0x00, 0xBC};  // d = 0.5, m = -1
        block[4] = 0x1F;
        block[19] = 0x8C;
        const auto values = dequantised(TensorType::q4_1, block, 32);
        CHECK(values[0] == 6.5F);
        CHECK(values[16] == -0.5F);
        CHECK(values[15] == 5.0F);
        CHECK(values[31] == 3.0F);
        CHECK(values[1] == -1.0F);
    }
    SECTION("q8_0") {
        std::array<std::uint8_t, 34> block{0x00, 0x34};  // d = 0.25
        block[2] = 0x80;
        block[18] = 0xFF;
        block[33] = 0x7F;
        const auto values = dequantised(TensorType::q8_0, block, 32);
        CHECK(values[0] == -32.0F);
        CHECK(values[16] == -0.25F);
        CHECK(values[31] == 31.75F);
        CHECK(values[1] == 0.0F);
    }
    SECTION("q6_k") {
        std::array<std::uint8_t, 210> block{};
        block[0] = 0xA5;              // low four of elements 0 and 64
        block[32] = 0x3C;             // of elements 32 and 96
        block[128] = 0xE4;            // high two of elements 0, 32, 64, 96: 0, 1, 2, 3
        block[64 + 63] = 0x70;        // low four of elements 191 (0) and 255 (7)
        block[128 + 32 + 31] = 0x40;  // high two of element 255: 1
        const std::array<std::uint8_t, 16> scales{2, 3, 4, 0xFF, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0x80};
        std::copy(scales.begin(), scales.end(), block.begin() + 192);
        block[208] = 0x00;
        block[209] = 0x38;  // d = 0.5
        const auto values = dequantised(TensorType::q6_k, block, 256);
        CHECK(values[0] == 0.5F * 2 * (5 - 32));
        CHECK(values[32] == 0.5F * 4 * (12 + 16 - 32));
        CHECK(values[64] == 0.5F * 6 * (10 + 32 - 32));
        CHECK(values[96] == 0.5F * 8 * (3 + 48 - 32));
        CHECK(values[16] == 0.5F * 3 * -32);
        CHECK(values[48] == 0.5F * -1 * -32);
        CHECK(values[191] == 0.5F * 13 * -32);
        CHECK(values[255] == 0.5F * -128 * (7 + 16 - 32));
    }
}

TEST_CASE("q4_0 from known values", "[engine][tensor]") {
    std::vector<float> values(32);
    for (std::size_t j = 0; j < 32; ++j) values[j] = (static_cast<float>(j % 16) - 8.0F) / 2.0F;
    std::vector<std::uint8_t> expected{0x00, 0x38};  // -4 / -8 = 0.5
    for (unsigned j = 0; j < 16; ++j) expected.push_back(static_cast<std::uint8_t>(j | j << 4U));
    CHECK(quantised(values) == expected);
    CHECK(from_q4_0(expected) == values);

    // Of two equal magnitudes the first decides the sign of d; the other is cut at level 15.
    std::vector<float> tie(32, 0.0F);
    tie[3] = 8.0F;
    tie[4] = -8.0F;
    const auto block = quantised(tie);
    CHECK(scale_bits(block) == 0xBC00);  // -1
    CHECK(block[2 + 3] == 0x80);
    CHECK(block[2 + 4] == 0x8F);

    const auto zero = quantised(std::vector<float>(32, 0.0F));
    for (std::size_t j = 2; j < 18; ++j) CHECK(zero[j] == 0x88);
    for (const float value : from_q4_0(zero)) CHECK(value == 0.0F);
}

// Rounding to a level costs |d| / 2, at the cut top of the range |d|. The stored half differs from d by up to 2^-11 |d|, times level 8;
// x / d has three roundings of at most 2^-24 16.5, less than 2^-18.
TEST_CASE("q4_0 is as near as its levels allow, and quantising again changes nothing", "[engine][tensor]") {
    std::mt19937 generator(5);
    std::normal_distribution<float> normal;
    for (const float scale : {1e-2F, 1.0F, 3e4F}) {
        std::vector<float> values(32 * 500);
        for (float& value : values) value = scale * normal(generator);
        const auto stored = quantised(values);
        const auto found = from_q4_0(stored);
        for (std::size_t i = 0; i < values.size(); ++i) {
            float extreme = 0.0F;
            for (std::size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) {
                if (std::fabs(values[j]) > std::fabs(extreme)) extreme = values[j];
            }
            const double d = double{extreme} / -8.0;
            const double reach = values[i] / d > 7.5 ? 1.0 : 0.5;
            REQUIRE(std::fabs(double{found[i]} - double{values[i]}) <= std::fabs(d) * (reach + 0x1p-8 + 0x1p-18));
        }
        CHECK(quantised(found) == stored);
    }
}

TEST_CASE("q4_0 of numbers whose scale is too small for a half is 0", "[engine][tensor]") {
    for (const float tiny : {1e-40F, -1e-40F, 2e-39F, std::numeric_limits<float>::denorm_min()}) {
        std::vector<float> values(32, tiny);
        values[1] = 0.0F;
        values[2] = -tiny / 2.0F;
        const std::vector<std::uint8_t> block = quantised(values);
        CAPTURE(tiny);
        CHECK((scale_bits(block) & 0x7FFFU) == 0);
        for (const float value : from_q4_0(block)) CHECK(value == 0.0F);
        // The inverse of the scale is infinite; no level may come of multiplying by it.
        for (std::size_t i = 2; i < block.size(); ++i) CHECK(block[i] == 0x88);
    }
}
