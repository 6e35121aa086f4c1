// How a tensor's elements are stored: the scalar types, and ggml's quantised blocks.
//
// A quantised row is a whole number of blocks, one after the other; an element is (block layouts and formulas: ggml-common.h and
// ggml-quants.c of ggml-org/ggml, 2026-08):
//   q4_0  32 elements, 18 bytes: f16 d; 16 bytes, byte j holds element j (low four bits) and j + 16 (high). x = d (n - 8)
//   q4_1  32 elements, 20 bytes: f16 d, f16 m; 16 bytes as above. x = d n + m
//   q8_0  32 elements, 34 bytes: f16 d; 32 signed bytes. x = d n
//   q6_k  256 elements, 210 bytes: 128 bytes of low four bits, 64 of high two, 16 signed scales, f16 d. x = d scale (n - 32)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kestrel {

enum class TensorType : std::uint8_t { f32, f16, bf16, q4_0, q4_1, q8_0, q6_k };
inline constexpr std::size_t tensor_type_count = static_cast<std::size_t>(TensorType::q6_k) + 1;

struct TensorTypeInfo {
    std::string_view name;             // "q4_0"
    std::uint64_t block_elements = 1;  // a row is a multiple of it
    std::uint64_t block_bytes = 4;
};

[[nodiscard]] const TensorTypeInfo& info_of(TensorType type) noexcept;

// Nothing if no type has this name.
[[nodiscard]] std::optional<TensorType> tensor_type_named(std::string_view name) noexcept;

// Bytes of `elements` consecutive elements, a multiple of block_elements.
[[nodiscard]] constexpr std::uint64_t bytes_of(const TensorTypeInfo& info, std::uint64_t elements) noexcept {
    return elements / info.block_elements * info.block_bytes;
}

// The exact value of an IEEE 754 half, and of a bfloat16.
[[nodiscard]] float f16_value(std::uint16_t bits) noexcept;
[[nodiscard]] float bf16_value(std::uint16_t bits) noexcept;

// The nearest half, ties to even; infinite above 65504 + 16.
[[nodiscard]] std::uint16_t f16_bits(float value) noexcept;

// Elements as f32; exact but for q4_1 and q6_k, whose sum or last product rounds. `stored` holds bytes_of(type, out.size()) and need not be
// aligned.
void dequantise(TensorType type, const std::byte* stored, std::span<float> out);

// ggml's q4_0: per block d = extreme / -8, where extreme is the value of largest magnitude (the first of equals), n = trunc(x / d + 8.5)
// limited to 15. `values` is a whole number of blocks; NaN or an infinity in it gives an unusable block, so check before.
void quantise_q4_0(std::span<const float> values, std::byte* stored);

// A tensor in memory: row-major, rows of whole blocks one after the other. A view; the bytes belong to somebody else.
struct StoredTensor {
    const std::byte* data = nullptr;  // null: the model has no such tensor
    TensorType type = TensorType::f32;
    // The elements, where the type is f32.
    [[nodiscard]] const float* f32() const noexcept { return reinterpret_cast<const float*>(data); }
};

}  // namespace kestrel
