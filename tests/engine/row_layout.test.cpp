// Rows as the CPU engine holds them: every byte comes back, from any block on, and the documented places hold the documented elements.
#include "engine/cpu/row_layout.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

using namespace kestrel;
using namespace kestrel::cpu;

namespace {

constexpr TensorType quantised[] = {TensorType::q4_0, TensorType::q4_1, TensorType::q8_0, TensorType::q6_k};

// All bytes random: any of them is a valid block.
std::vector<std::byte> random_row(TensorType type, std::size_t cols) {
    std::mt19937 random(static_cast<unsigned>(cols));
    std::vector<std::byte> row(bytes_of(info_of(type), cols));
    for (std::byte& b : row) b = static_cast<std::byte>(random() & 0xFFU);
    return row;
}

std::vector<std::byte> arranged(TensorType type, std::size_t cols, const std::vector<std::byte>& stored) {
    constexpr auto unwritten = std::byte{0xA5};
    std::vector<std::byte> row(stored.size() + 1, unwritten);
    arrange_row(type, cols, stored.data(), row.data());
    CHECK(row.back() == unwritten);
    row.pop_back();
    return row;
}

unsigned bits_of(const std::byte* line, std::size_t word, unsigned shift, unsigned count) {
    unsigned value = 0;
    for (std::size_t b = 0; b < 4; ++b) value |= std::to_integer<unsigned>(line[4 * word + b]) << (8 * b);
    return value >> shift & ((1U << count) - 1U);
}

}  // namespace

TEST_CASE("arranged rows come back byte for byte", "[engine][layout]") {
    const auto type = static_cast<TensorType>(GENERATE(range(0, static_cast<int>(tensor_type_count))));
    const TensorTypeInfo& info = info_of(type);
    for (const std::size_t blocks : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 15U, 16U, 17U, 31U, 160U}) {
        const std::size_t cols = blocks * info.block_elements;
        CAPTURE(info.name, cols);
        const std::vector<std::byte> stored = random_row(type, cols);
        const std::vector<std::byte> row = arranged(type, cols, stored);
        for (const std::size_t first : {std::size_t{0}, blocks / 2, blocks - 1}) {
            const std::vector<std::byte> wanted(stored.begin() + static_cast<std::ptrdiff_t>(first * info.block_bytes), stored.end());
            std::vector<std::byte> found(wanted.size(), std::byte{0xFF});
            restore_blocks(type, cols, row.data(), first, blocks - first, found.data());
            REQUIRE(found == wanted);
        }
    }
}

TEST_CASE("arranged rows hold their elements where the layout says", "[engine][layout]") {
    constexpr std::size_t cols = 512;
    for (const TensorType type : quantised) {
        const TensorTypeInfo& info = info_of(type);
        CAPTURE(info.name);
        std::vector<std::byte> stored = random_row(type, cols);
        // Every d is 1, q4_1's m 0 and all q6_k scales 1, so that dequantising gives the numbers.
        const auto put_half = [](std::byte* at, unsigned half) {
            at[0] = static_cast<std::byte>(half & 0xFFU);
            at[1] = static_cast<std::byte>(half >> 8U);
        };
        for (std::size_t at = 0; at < stored.size(); at += info.block_bytes) {
            put_half(&stored[at + (type == TensorType::q6_k ? 208 : 0)], 0x3C00);
            if (type == TensorType::q4_1) put_half(&stored[at + 2], 0);
            for (std::size_t g = 0; type == TensorType::q6_k && g < 16; ++g) stored[at + 192 + g] = std::byte{1};
        }
        std::vector<float> values(cols);
        dequantise(type, stored.data(), values);
        const std::vector<std::byte> row = arranged(type, cols, stored);
        const std::size_t blocks = cols / info.block_elements;
        for (std::size_t c = 0; c < cols; ++c) {
            CAPTURE(c);
            const std::size_t k = c % 128 / 16;
            const std::size_t j = c % 16;
            float found = 0.0F;
            if (type == TensorType::q8_0) {
                found = static_cast<float>(static_cast<std::int8_t>(row[2 * blocks + c]));
            } else if (type == TensorType::q6_k) {
                const std::byte* lines = &row[18 * blocks + c / 256 * 192];
                const std::size_t g = c % 256 / 16;
                const unsigned code =
                    g < 15 ? bits_of(lines + g / 5 * 64, j, static_cast<unsigned>(2 + 6 * (g % 5)), 6)
                           : bits_of(lines, j, 0, 2) | bits_of(lines + 64, j, 0, 2) << 2U | bits_of(lines + 128, j, 0, 2) << 4U;
                found = static_cast<float>(code) - 32.0F;
            } else {
                const std::size_t headers = type == TensorType::q4_1 ? 2 : 1;
                const unsigned n = bits_of(&row[2 * headers * blocks + c / 128 * 64], j, static_cast<unsigned>(4 * k), 4);
                found = static_cast<float>(n) - (type == TensorType::q4_0 ? 8.0F : 0.0F);
            }
            REQUIRE(found == values[c]);
        }
    }
}
