#include "engine/cpu/row_layout.hpp"

#include <array>
#include <cstdint>
#include <cstring>

namespace kestrel::cpu {
namespace {

constexpr std::size_t half_bytes = 2;
constexpr std::size_t lanes = 16;  // words of a line

// ---- nibbles. ggml's byte j of a block has elements j and j + 16, so the word j of a line is byte j of each of its four blocks.

constexpr std::size_t line_blocks = 4;
constexpr std::size_t nibble_bytes = 16;  // of a block

// `headers` f16 numbers come before the nibbles of each block.
void arrange_nibbles(std::size_t blocks, std::size_t headers, const std::byte* stored, std::byte* row) {
    const std::size_t stored_bytes = headers * half_bytes + nibble_bytes;
    std::byte* packed = row + blocks * headers * half_bytes;
    const std::size_t lined = blocks / line_blocks * line_blocks;
    for (std::size_t i = 0; i < blocks; ++i, stored += stored_bytes) {
        for (std::size_t h = 0; h < headers; ++h) {
            std::memcpy(row + (h * blocks + i) * half_bytes, stored + h * half_bytes, half_bytes);
        }
        const std::byte* nibbles = stored + headers * half_bytes;
        if (i < lined) {
            std::byte* line = packed + i / line_blocks * line_blocks * nibble_bytes + i % line_blocks;
            for (std::size_t j = 0; j < nibble_bytes; ++j) line[line_blocks * j] = nibbles[j];
        } else {
            std::memcpy(packed + i * nibble_bytes, nibbles, nibble_bytes);
        }
    }
}

void restore_nibbles(std::size_t blocks, std::size_t headers, const std::byte* row, std::size_t i, std::byte* stored) {
    for (std::size_t h = 0; h < headers; ++h) std::memcpy(stored + h * half_bytes, row + (h * blocks + i) * half_bytes, half_bytes);
    std::byte* nibbles = stored + headers * half_bytes;
    const std::byte* packed = row + blocks * headers * half_bytes;
    if (i < blocks / line_blocks * line_blocks) {
        const std::byte* line = packed + i / line_blocks * line_blocks * nibble_bytes + i % line_blocks;
        for (std::size_t j = 0; j < nibble_bytes; ++j) nibbles[j] = line[line_blocks * j];
    } else {
        std::memcpy(nibbles, packed + i * nibble_bytes, nibble_bytes);
    }
}

// ---- q8_0

constexpr std::size_t number_bytes = 32;  // of a block

void arrange_bytes(std::size_t blocks, const std::byte* stored, std::byte* row) {
    for (std::size_t i = 0; i < blocks; ++i, stored += half_bytes + number_bytes) {
        std::memcpy(row + i * half_bytes, stored, half_bytes);
        std::memcpy(row + blocks * half_bytes + i * number_bytes, stored + half_bytes, number_bytes);
    }
}

void restore_bytes(std::size_t blocks, const std::byte* row, std::size_t i, std::byte* stored) {
    std::memcpy(stored, row + i * half_bytes, half_bytes);
    std::memcpy(stored + half_bytes, row + blocks * half_bytes + i * number_bytes, number_bytes);
}

// ---- q6_k

constexpr std::size_t groups = 16;  // of sixteen columns in a block, and their scales
constexpr std::size_t code_bytes = 192;
constexpr std::size_t codes_per_word = 5;
constexpr std::size_t lines = 3;
constexpr std::size_t last_group = lines * codes_per_word;  // in the lowest bits of all three
using Words = std::array<std::uint32_t, lines * lanes>;

using Numbers = std::array<std::uint8_t, groups * lanes>;  // in the order of columns
using Packed = std::array<std::uint8_t, code_bytes>;       // as ggml has them: see `sixes` of tensor_type.cpp

// Copies first, so that the compiler knows that nothing overlaps.
void arrange_codes(const std::byte* stored, std::byte* codes) {
    Packed packed;
    Numbers n;
    Words words;
    std::memcpy(packed.data(), stored, code_bytes);
    for (std::size_t half = 0; half < 2; ++half) {
        const std::uint8_t* low = packed.data() + 64 * half;
        const std::uint8_t* high = packed.data() + 128 + 32 * half;
        std::uint8_t* out = n.data() + 128 * half;
        for (std::size_t j = 0; j < 32; ++j) {
            out[j] = static_cast<std::uint8_t>((low[j] & 15) | (high[j] & 3) << 4);
            out[32 + j] = static_cast<std::uint8_t>((low[32 + j] & 15) | (high[j] & 12) << 2);
            out[64 + j] = static_cast<std::uint8_t>(low[j] >> 4 | (high[j] & 48));
            out[96 + j] = static_cast<std::uint8_t>(low[32 + j] >> 4 | (high[j] & 192) >> 2);
        }
    }
    for (std::size_t l = 0; l < lines; ++l) {
        const std::uint8_t* from = n.data() + l * codes_per_word * lanes;
        const std::uint8_t* last = n.data() + last_group * lanes;
        for (std::size_t j = 0; j < lanes; ++j) {
            std::uint32_t word = last[j] >> (2 * l) & 3U;
            for (std::size_t c = 0; c < codes_per_word; ++c) word |= static_cast<std::uint32_t>(from[c * lanes + j]) << (2 + 6 * c);
            words[l * lanes + j] = word;
        }
    }
    std::memcpy(codes, words.data(), code_bytes);
}

void restore_codes(const std::byte* codes, std::byte* stored) {
    Words words;
    Numbers n;
    Packed packed;
    std::memcpy(words.data(), codes, code_bytes);
    for (std::size_t l = 0; l < lines; ++l) {
        std::uint8_t* to = n.data() + l * codes_per_word * lanes;
        for (std::size_t c = 0; c < codes_per_word; ++c) {
            for (std::size_t j = 0; j < lanes; ++j)
                to[c * lanes + j] = static_cast<std::uint8_t>(words[l * lanes + j] >> (2 + 6 * c) & 63U);
        }
    }
    for (std::size_t j = 0; j < lanes; ++j) {
        n[last_group * lanes + j] =
            static_cast<std::uint8_t>((words[j] & 3U) | (words[lanes + j] & 3U) << 2U | (words[2 * lanes + j] & 3U) << 4U);
    }
    for (std::size_t half = 0; half < 2; ++half) {
        const std::uint8_t* in = n.data() + 128 * half;
        std::uint8_t* low = packed.data() + 64 * half;
        std::uint8_t* high = packed.data() + 128 + 32 * half;
        for (std::size_t j = 0; j < 32; ++j) {
            low[j] = static_cast<std::uint8_t>((in[j] & 15) | (in[64 + j] & 15) << 4);
            low[32 + j] = static_cast<std::uint8_t>((in[32 + j] & 15) | (in[96 + j] & 15) << 4);
            high[j] = static_cast<std::uint8_t>(in[j] >> 4 | (in[32 + j] & 48) >> 2 | (in[64 + j] & 48) | (in[96 + j] & 48) << 2);
        }
    }
    std::memcpy(stored, packed.data(), code_bytes);
}

void arrange_k(std::size_t blocks, const std::byte* stored, std::byte* row) {
    for (std::size_t i = 0; i < blocks; ++i, stored += code_bytes + groups + half_bytes) {
        std::memcpy(row + i * half_bytes, stored + code_bytes + groups, half_bytes);
        std::memcpy(row + blocks * half_bytes + i * groups, stored + code_bytes, groups);
        arrange_codes(stored, row + blocks * (half_bytes + groups) + i * code_bytes);
    }
}

void restore_k(std::size_t blocks, const std::byte* row, std::size_t i, std::byte* stored) {
    restore_codes(row + blocks * (half_bytes + groups) + i * code_bytes, stored);
    std::memcpy(stored + code_bytes, row + blocks * half_bytes + i * groups, groups);
    std::memcpy(stored + code_bytes + groups, row + i * half_bytes, half_bytes);
}

}  // namespace

void arrange_row(TensorType type, std::size_t cols, const std::byte* stored, std::byte* row) {
    const TensorTypeInfo& info = info_of(type);
    const std::size_t blocks = cols / info.block_elements;
    switch (type) {
        case TensorType::q4_0:
            return arrange_nibbles(blocks, 1, stored, row);
        case TensorType::q4_1:
            return arrange_nibbles(blocks, 2, stored, row);
        case TensorType::q8_0:
            return arrange_bytes(blocks, stored, row);
        case TensorType::q6_k:
            return arrange_k(blocks, stored, row);
        case TensorType::f32:
        case TensorType::f16:
        case TensorType::bf16:
            std::memcpy(row, stored, bytes_of(info, cols));
    }
}

void restore_blocks(TensorType type, std::size_t cols, const std::byte* row, std::size_t first, std::size_t count, std::byte* stored) {
    const TensorTypeInfo& info = info_of(type);
    const std::size_t blocks = cols / info.block_elements;
    for (std::size_t i = first; i < first + count; ++i, stored += info.block_bytes) {
        switch (type) {
            case TensorType::q4_0:
                restore_nibbles(blocks, 1, row, i, stored);
                break;
            case TensorType::q4_1:
                restore_nibbles(blocks, 2, row, i, stored);
                break;
            case TensorType::q8_0:
                restore_bytes(blocks, row, i, stored);
                break;
            case TensorType::q6_k:
                restore_k(blocks, row, i, stored);
                break;
            case TensorType::f32:
            case TensorType::f16:
            case TensorType::bf16:
                std::memcpy(stored, row + i * info.block_bytes, info.block_bytes);
        }
    }
}

}  // namespace kestrel::cpu
