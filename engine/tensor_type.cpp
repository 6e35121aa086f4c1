#include "engine/tensor_type.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace kestrel {
namespace {

constexpr std::array<TensorTypeInfo, tensor_type_count> infos{{
    {"f32", 1, 4},
    {"f16", 1, 2},
    {"bf16", 1, 2},
    {"q4_0", 32, 18},
    {"q4_1", 32, 20},
    {"q8_0", 32, 34},
    {"q6_k", 256, 210},
}};

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

float half_at(const std::byte* from) {
    return f16_value(load<std::uint16_t>(from));
}

unsigned byte_at(const std::byte* from) {
    return std::to_integer<unsigned>(*from);
}

float signed_at(const std::byte* from) {
    return static_cast<float>(load<std::int8_t>(from));
}

// Sixteen bytes of two four-bit numbers: out = scale (n - zero) + offset.
void nibbles(const std::byte* packed, float scale, float zero, float offset, float* out) {
    for (std::size_t j = 0; j < 16; ++j) {
        out[j] = scale * (static_cast<float>(byte_at(packed + j) & 0xFU) - zero) + offset;
        out[j + 16] = scale * (static_cast<float>(byte_at(packed + j) >> 4U) - zero) + offset;
    }
}

// Half a q6_k block, 128 elements as four runs of 32: run r takes nibble r / 2 of byte 32 (r % 2) + j, bits 2r of high byte j, and
// scale 2r + j / 16.
void sixes(const std::byte* low, const std::byte* high, const std::byte* scales, float d, float* out) {
    for (std::size_t r = 0; r < 4; ++r) {
        for (std::size_t j = 0; j < 32; ++j) {
            const unsigned four = (byte_at(low + 32 * (r % 2) + j) >> (4 * (r / 2))) & 0xFU;
            const unsigned two = (byte_at(high + j) >> (2 * r)) & 3U;
            out[32 * r + j] = d * signed_at(scales + 2 * r + j / 16) * (static_cast<float>(four | two << 4U) - 32.0F);
        }
    }
}

void dequantise_block(TensorType type, const std::byte* block, float* out) {
    switch (type) {
        case TensorType::f32:
            *out = load<float>(block);
            break;
        case TensorType::f16:
            *out = half_at(block);
            break;
        case TensorType::bf16:
            *out = bf16_value(load<std::uint16_t>(block));
            break;
        case TensorType::q4_0:
            nibbles(block + 2, half_at(block), 8.0F, 0.0F, out);
            break;
        case TensorType::q4_1:
            nibbles(block + 4, half_at(block), 0.0F, half_at(block + 2), out);
            break;
        case TensorType::q8_0:
            for (std::size_t j = 0; j < 32; ++j) out[j] = half_at(block) * signed_at(block + 2 + j);
            break;
        case TensorType::q6_k:
            for (std::size_t half = 0; half < 2; ++half) {
                sixes(block + 64 * half, block + 128 + 32 * half, block + 192 + 8 * half, half_at(block + 208), out + 128 * half);
            }
            break;
    }
}

}  // namespace

const TensorTypeInfo& info_of(TensorType type) noexcept {
    return infos[static_cast<std::size_t>(type)];
}

std::optional<TensorType> tensor_type_named(std::string_view name) noexcept {
    for (std::size_t i = 0; i < tensor_type_count; ++i) {
        if (infos[i].name == name) return static_cast<TensorType>(i);
    }
    return std::nullopt;
}

float f16_value(std::uint16_t bits) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
    const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
    const std::uint32_t fraction = bits & 0x3FFU;
    if (exponent == 0) {  // zero or subnormal: fraction 2^-24
        const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
        return sign != 0 ? -magnitude : magnitude;
    }
    const std::uint32_t wide = exponent == 0x1FU ? 0xFFU : exponent + 112U;
    return std::bit_cast<float>(sign | wide << 23U | fraction << 13U);
}

float bf16_value(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::uint16_t f16_bits(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);  // NaN
    if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);
    if (magnitude < 0x38800000U) {  // below 2^-14: units of 2^-24
        const auto units = static_cast<std::uint16_t>(std::lrint(std::bit_cast<float>(magnitude) * 0x1p24F));
        return static_cast<std::uint16_t>(sign | units);
    }
    // A carry out of the fraction goes into the exponent, as it should.
    const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13U) & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
}

void dequantise(TensorType type, const std::byte* stored, std::span<float> out) {
    const TensorTypeInfo& info = info_of(type);
    for (std::size_t i = 0; i < out.size(); i += info.block_elements) {
        dequantise_block(type, stored, out.data() + i);
        stored += info.block_bytes;
    }
}

void quantise_q4_0(std::span<const float> values, std::byte* stored) {
    constexpr std::size_t block = 32;
    for (std::size_t start = 0; start < values.size(); start += block) {
        const std::span<const float> x = values.subspan(start, block);
        float extreme = 0.0F;
        for (const float value : x) {
            if (std::fabs(value) > std::fabs(extreme)) extreme = value;
        }
        const float d = extreme / -8.0F;
        // Of a scale so small that its inverse is infinite, a half is 0: the block's elements are, whatever their levels.
        const float inverse = std::isfinite(1.0F / d) ? 1.0F / d : 0.0F;
        const std::uint16_t d_bits = f16_bits(d);
        std::memcpy(stored, &d_bits, sizeof d_bits);
        const auto level = [&](std::size_t j) { return std::min(15U, static_cast<unsigned>(x[j] * inverse + 8.5F)); };
        for (std::size_t j = 0; j < block / 2; ++j) stored[2 + j] = static_cast<std::byte>(level(j) | level(j + block / 2) << 4U);
        stored += info_of(TensorType::q4_0).block_bytes;
    }
}

}  // namespace kestrel
