#include "engine/synthetic_blocks.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace kestrel {
namespace {

template <class T>
void put(std::byte* at, T value) {
    std::memcpy(at, &value, sizeof value);
}

// Nibbles level + 8 as q4_0 and q4_1 lay them out.
void pack_nibbles(const int* levels, std::byte* out) {
    for (std::size_t j = 0; j < 16; ++j) out[j] = static_cast<std::byte>((levels[j] + 8) | (levels[j + 16] + 8) << 4);
}

// Numbers level + 32 with scales of 1: bits 0-3 and 4-5 apart, in runs of 32 (tensor_type.cpp, sixes).
void pack_sixes(const int* levels, std::byte* out) {
    std::memset(out, 0, 192);
    for (std::size_t i = 0; i < 256; ++i) {
        const std::size_t half = i / 128;
        const std::size_t run = i % 128 / 32;
        const std::size_t j = i % 32;
        const auto number = static_cast<unsigned>(levels[i] + 32);
        out[64 * half + 32 * (run % 2) + j] |= static_cast<std::byte>((number & 0xFU) << (4 * (run / 2)));
        out[128 + 32 * half + j] |= static_cast<std::byte>((number >> 4U) << (2 * run));
    }
    std::memset(out + 192, 1, 16);
}

}  // namespace

void pack_levels(TensorType type, const int* levels, int shift, std::byte* out) noexcept {
    const float unit = 1.0F / static_cast<float>(1U << static_cast<unsigned>(shift));
    const float first = static_cast<float>(levels[0]) * unit;
    switch (type) {
        case TensorType::f32:
            put(out, first);
            break;
        case TensorType::f16:
            put(out, f16_bits(first));
            break;
        case TensorType::bf16:  // three significant bits: nothing is cut off
            put(out, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(first) >> 16U));
            break;
        case TensorType::q4_0:
            put(out, f16_bits(unit));
            pack_nibbles(levels, out + 2);
            break;
        case TensorType::q4_1:
            put(out, f16_bits(unit));
            put(out + 2, f16_bits(-8.0F * unit));
            pack_nibbles(levels, out + 4);
            break;
        case TensorType::q8_0:
            put(out, f16_bits(unit));
            for (std::size_t j = 0; j < 32; ++j) put(out + 2 + j, static_cast<std::int8_t>(levels[j]));
            break;
        case TensorType::q6_k:
            pack_sixes(levels, out);
            put(out + 208, f16_bits(unit));
            break;
    }
}

}  // namespace kestrel
