#include "engine/cpu/row_layout.hpp"

#include <array>
#include <cstring>

namespace kestrel::cpu {
namespace {

constexpr std::size_t block = 32;          // columns, of all types but q6_k
constexpr std::size_t line_columns = 128;  // whose nibbles fill a line of 64 bytes
constexpr std::size_t line_blocks = line_columns / block;
constexpr std::size_t line_bytes = 64;
constexpr std::size_t nibble_bytes = 16;  // of a block
constexpr std::size_t half_bytes = 2;

constexpr std::size_t k_block = 256;
constexpr std::size_t k_scales = 16;
constexpr std::size_t code_bytes = 192;
constexpr std::size_t codes_per_word = 5;

unsigned byte_at(const std::byte* from) {
    return std::to_integer<unsigned>(*from);
}

// ---- nibbles. A block's element e is in byte e % 16 of ggml's sixteen, in the upper half if e >= 16.

struct Nibble {
    std::size_t byte;
    unsigned shift;
};
constexpr Nibble in_block(std::size_t element) {
    return {element % 16, element < 16 ? 0U : 4U};
}
constexpr Nibble in_line(std::size_t column) {
    return {4 * (column % 16) + column / 32, column / 16 % 2 == 0 ? 0U : 4U};
}

void move_nibble(const std::byte* from, Nibble at, std::byte* to, Nibble place) {
    to[place.byte] |= static_cast<std::byte>(((byte_at(from + at.byte) >> at.shift) & 0xFU) << place.shift);
}

// `headers` f16 numbers before the nibbles of each block.
void arrange_nibbles(std::size_t blocks, std::size_t headers, const std::byte* stored, std::byte* row) {
    const std::size_t stored_bytes = headers * half_bytes + nibble_bytes;
    const std::byte* nibbles = stored + headers * half_bytes;
    std::byte* packed = row + blocks * headers * half_bytes;
    const std::size_t lined = blocks / line_blocks * line_blocks;
    std::memset(packed, 0, blocks * nibble_bytes);
    for (std::size_t i = 0; i < blocks; ++i) {
        for (std::size_t h = 0; h < headers; ++h) {
            std::memcpy(row + (h * blocks + i) * half_bytes, stored + i * stored_bytes + h * half_bytes, half_bytes);
        }
        const std::byte* from = nibbles + i * stored_bytes;
        if (i >= lined) {
            std::memcpy(packed + i * nibble_bytes, from, nibble_bytes);
            continue;
        }
        std::byte* line = packed + i / line_blocks * line_bytes;
        for (std::size_t e = 0; e < block; ++e) move_nibble(from, in_block(e), line, in_line(i % line_blocks * block + e));
    }
}

void restore_nibbles(std::size_t blocks, std::size_t headers, const std::byte* row, std::size_t i, std::byte* stored) {
    for (std::size_t h = 0; h < headers; ++h) std::memcpy(stored + h * half_bytes, row + (h * blocks + i) * half_bytes, half_bytes);
    std::byte* to = stored + headers * half_bytes;
    const std::byte* packed = row + blocks * headers * half_bytes;
    if (i >= blocks / line_blocks * line_blocks) {
        std::memcpy(to, packed + i * nibble_bytes, nibble_bytes);
        return;
    }
    std::memset(to, 0, nibble_bytes);
    const std::byte* line = packed + i / line_blocks * line_bytes;
    for (std::size_t e = 0; e < block; ++e) move_nibble(line, in_line(i % line_blocks * block + e), to, in_block(e));
}

// ---- q8_0

void arrange_bytes(std::size_t blocks, const std::byte* stored, std::byte* row) {
    constexpr std::size_t stored_bytes = half_bytes + block;
    for (std::size_t i = 0; i < blocks; ++i) {
        std::memcpy(row + i * half_bytes, stored + i * stored_bytes, half_bytes);
        std::memcpy(row + blocks * half_bytes + i * block, stored + i * stored_bytes + half_bytes, block);
    }
}

void restore_bytes(std::size_t blocks, const std::byte* row, std::size_t i, std::byte* stored) {
    std::memcpy(stored, row + i * half_bytes, half_bytes);
    std::memcpy(stored + half_bytes, row + blocks * half_bytes + i * block, block);
}

// ---- q6_k. Where ggml has a code: see `sixes` of tensor_type.cpp.

struct Six {
    std::size_t low_byte, high_byte;
    unsigned low_shift, high_shift;
};
constexpr Six in_k_block(std::size_t column) {
    const std::size_t half = column / 128, run = column % 128 / 32, j = column % 32;
    return {64 * half + 32 * (run % 2) + j, 128 + 32 * half + j, static_cast<unsigned>(4 * (run / 2)), static_cast<unsigned>(2 * run)};
}

constexpr std::size_t last_codes = 3 * codes_per_word;  // of three lines' whole codes; the sixteenth is in their lowest bits
using Words = std::array<std::uint32_t, code_bytes / sizeof(std::uint32_t)>;

unsigned code_shift(std::size_t group) {
    return static_cast<unsigned>(2 + 6 * (group % codes_per_word));
}

void arrange_codes(const std::byte* stored, std::byte* codes) {
    Words words{};
    for (std::size_t c = 0; c < k_block; ++c) {
        const Six at = in_k_block(c);
        const std::uint32_t low = (byte_at(stored + at.low_byte) >> at.low_shift) & 0xFU;
        const std::uint32_t code = low | ((byte_at(stored + at.high_byte) >> at.high_shift) & 3U) << 4U;
        const std::size_t group = c / 16, j = c % 16;
        if (group < last_codes) {
            words[16 * (group / codes_per_word) + j] |= code << code_shift(group);
        } else {
            for (unsigned l = 0; l < 3; ++l) words[16 * l + j] |= (code >> (2 * l)) & 3U;
        }
    }
    std::memcpy(codes, words.data(), code_bytes);
}

void restore_codes(const std::byte* codes, std::byte* stored) {
    Words words;
    std::memcpy(words.data(), codes, code_bytes);
    std::memset(stored, 0, code_bytes);
    for (std::size_t c = 0; c < k_block; ++c) {
        const std::size_t group = c / 16, j = c % 16;
        const unsigned code = group < last_codes ? (words[16 * (group / codes_per_word) + j] >> code_shift(group)) & 0x3FU
                                                 : (words[j] & 3U) | (words[16 + j] & 3U) << 2U | (words[32 + j] & 3U) << 4U;
        const Six at = in_k_block(c);
        stored[at.low_byte] |= static_cast<std::byte>((code & 0xFU) << at.low_shift);
        stored[at.high_byte] |= static_cast<std::byte>((code >> 4U) << at.high_shift);
    }
}

void arrange_k(std::size_t blocks, const std::byte* stored, std::byte* row) {
    for (std::size_t i = 0; i < blocks; ++i, stored += code_bytes + k_scales + half_bytes) {
        std::memcpy(row + i * half_bytes, stored + code_bytes + k_scales, half_bytes);
        std::memcpy(row + blocks * half_bytes + i * k_scales, stored + code_bytes, k_scales);
        arrange_codes(stored, row + blocks * (half_bytes + k_scales) + i * code_bytes);
    }
}

void restore_k(std::size_t blocks, const std::byte* row, std::size_t i, std::byte* stored) {
    restore_codes(row + blocks * (half_bytes + k_scales) + i * code_bytes, stored);
    std::memcpy(stored + code_bytes, row + blocks * half_bytes + i * k_scales, k_scales);
    std::memcpy(stored + code_bytes + k_scales, row + i * half_bytes, half_bytes);
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
