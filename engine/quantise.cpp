#include "engine/quantise.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace kestrel {
namespace {

using Values = std::span<const float>;

template <class T>
void put(T value, std::byte* to) {
    std::memcpy(to, &value, sizeof value);
}

// Nearest, ties to even, as the scalar conversion of every library does it.
std::uint16_t bf16_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

// A scale as the block will hold it.
float put_half(float value, std::byte* to) {
    const std::uint16_t bits = f16_bits(value);
    put(bits, to);
    return f16_value(bits);
}

float largest_magnitude(Values x) {
    float largest = 0.0F;
    for (const float value : x) largest = std::max(largest, std::fabs(value));
    return largest;
}

int nearest(float x, float step, int low, int high) {
    return step != 0.0F ? std::clamp(static_cast<int>(std::lrint(x / step)), low, high) : std::clamp(0, low, high);
}

void q8_0(Values x, std::byte* to) {
    const float d = put_half(largest_magnitude(x) / 127.0F, to);
    for (std::size_t j = 0; j < x.size(); ++j) put(static_cast<std::int8_t>(nearest(x[j], d, -127, 127)), to + 2 + j);
}

void q4_1(Values x, std::byte* to) {
    const auto [low, high] = std::minmax_element(x.begin(), x.end());
    const float d = put_half((*high - *low) / 15.0F, to);
    const float m = put_half(*low, to + 2);
    const auto level = [&](std::size_t j) { return static_cast<unsigned>(nearest(x[j] - m, d, 0, 15)); };
    for (std::size_t j = 0; j < 16; ++j) to[4 + j] = static_cast<std::byte>(level(j) | level(j + 16) << 4U);
}

// Sixteen scales of sixteen elements each; where an element's bits go: see dequantise.
void q6_k(Values x, std::byte* to) {
    std::array<float, 16> scale{};
    for (std::size_t g = 0; g < scale.size(); ++g) scale[g] = largest_magnitude(x.subspan(16 * g, 16)) / 31.0F;
    const float d = put_half(*std::max_element(scale.begin(), scale.end()) / 127.0F, to + 208);
    std::memset(to, 0, 192);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t half = i / 128;
        const std::size_t run = i % 128 / 32;
        const std::size_t j = i % 32;
        const int step = nearest(scale[i / 16], d, 0, 127);
        put(static_cast<std::int8_t>(step), to + 192 + i / 16);
        const auto level = static_cast<unsigned>(nearest(x[i], d * static_cast<float>(step), -32, 31) + 32);
        to[64 * half + 32 * (run % 2) + j] |= static_cast<std::byte>((level & 0xFU) << (4 * (run / 2)));
        to[128 + 32 * half + j] |= static_cast<std::byte>((level >> 4U) << (2 * run));
    }
}

void quantise_block(TensorType type, Values x, std::byte* to) {
    switch (type) {
        case TensorType::f32:
            return put(x[0], to);
        case TensorType::f16:
            return put(f16_bits(x[0]), to);
        case TensorType::bf16:
            return put(bf16_bits(x[0]), to);
        case TensorType::q4_0:
            return quantise_q4_0(x, to);
        case TensorType::q4_1:
            return q4_1(x, to);
        case TensorType::q8_0:
            return q8_0(x, to);
        case TensorType::q6_k:
            return q6_k(x, to);
    }
}

}  // namespace

std::vector<std::byte> quantise(TensorType type, Values values) {
    const TensorTypeInfo& info = info_of(type);
    std::vector<std::byte> stored(bytes_of(info, values.size()));
    for (std::size_t block = 0; block * info.block_elements < values.size(); ++block) {
        quantise_block(type, values.subspan(block * info.block_elements, info.block_elements), stored.data() + block * info.block_bytes);
    }
    return stored;
}

}  // namespace kestrel
