#include "engine/tensor_check.hpp"

#include <cstring>

namespace kestrel {
namespace {

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// All bits of the exponent are set in NaN and infinity, and in nothing else.
template <class T, T Exponent>
bool odd(const std::byte* at) {
    return (load<T>(at) & Exponent) == Exponent;
}
constexpr auto odd_f32 = odd<std::uint32_t, 0x7F800000U>;
constexpr auto odd_f16 = odd<std::uint16_t, 0x7C00U>;
constexpr auto odd_bf16 = odd<std::uint16_t, 0x7F80U>;

// The scales of a block are finite, so are its elements: 65504 x 128 x 32 is far below what f32 holds.
bool odd_block(TensorType type, const std::byte* block) {
    switch (type) {
        case TensorType::f32:
            return odd_f32(block);
        case TensorType::f16:
            return odd_f16(block);
        case TensorType::bf16:
            return odd_bf16(block);
        case TensorType::q4_0:
        case TensorType::q8_0:
            return odd_f16(block);
        case TensorType::q4_1:
            return odd_f16(block) || odd_f16(block + 2);
        case TensorType::q6_k:
            return odd_f16(block + 208);
    }
    return true;
}

}  // namespace

std::optional<std::uint64_t> first_not_finite(TensorType type, const std::byte* stored, std::uint64_t elements) noexcept {
    const TensorTypeInfo& info = info_of(type);
    for (std::uint64_t e = 0; e < elements; e += info.block_elements, stored += info.block_bytes) {
        if (odd_block(type, stored)) return e;
    }
    return std::nullopt;
}

}  // namespace kestrel
