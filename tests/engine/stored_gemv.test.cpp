// Products with stored matrices: the error against double precision is within the bound that the order of operations gives, and the bits
// are those of the dequantised f32 matrix, for every instruction set, split of rows, and place in memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/cpu/kernels.hpp"

using namespace kestrel;
using namespace kestrel::cpu;

namespace {

std::vector<const Kernels*> tables() {
    std::vector<const Kernels*> all{&base::table()};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) all.push_back(&avx2::table());
    if (__builtin_cpu_supports("avx512f")) all.push_back(&avx512::table());
#endif
    return all;
}

// What the scales of blocks, or plain numbers, are drawn from.
enum class Scales { usual, largest, subnormal };

std::uint16_t half_of(Scales scales, std::mt19937& random) {
    const auto sign = static_cast<std::uint16_t>((random() & 1U) << 15U);
    switch (scales) {
        case Scales::usual:
            return static_cast<std::uint16_t>(sign | (0x1800U + random() % 0x1000U));  // 2^-9 to 2^-5
        case Scales::largest:
            return static_cast<std::uint16_t>(sign | (0x7B00U + random() % 0x100U));  // up to 65504
        case Scales::subnormal:
            return static_cast<std::uint16_t>(sign | random() % 0x400U);  // below 2^-14, and zero
    }
    return 0;
}

// Random rows of a type, from the second byte of `bytes` on, so that blocks lie unaligned; f32, which must be aligned, from the first.
struct Matrix {
    Matrix(TensorType type, std::size_t rows, std::size_t cols, Scales scales)
        : offset(type == TensorType::f32 ? 0 : 1), bytes(offset + bytes_of(info_of(type), rows * cols)), values(rows * cols) {
        std::mt19937 random(static_cast<unsigned>(rows * 1000 + cols));
        for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xFFU);
        const TensorTypeInfo& info = info_of(type);
        for (std::size_t at = offset; at < bytes.size(); at += info.block_bytes) {
            const std::uint16_t half = half_of(scales, random);
            const float plain = f16_value(half) + f16_value(half) * 0x1p-12F;
            const auto wide = static_cast<std::uint16_t>(half & 0xBFFFU);
            const std::uint16_t minimum = half_of(scales, random);
            if (type == TensorType::f32) std::memcpy(&bytes[at], &plain, sizeof plain);
            if (type == TensorType::bf16) std::memcpy(&bytes[at], &wide, sizeof wide);  // below 2
            if (type == TensorType::q6_k) std::memcpy(&bytes[at + 208], &half, sizeof half);
            if (type == TensorType::q4_1) std::memcpy(&bytes[at + 2], &minimum, sizeof minimum);
            const bool half_first = type != TensorType::f32 && type != TensorType::bf16 && type != TensorType::q6_k;
            if (half_first) std::memcpy(&bytes[at], &half, sizeof half);
        }
        dequantise(type, bytes.data() + offset, values);
        const std::size_t row_bytes = bytes_of(info, cols);
        rows_held.resize(bytes.size() + overrun);
        for (std::size_t at = offset; at < bytes.size(); at += row_bytes) arrange_row(type, cols, &bytes[at], &rows_held[at]);
        arranged = {rows_held.data() + offset, type};
    }
    std::size_t offset;
    std::vector<std::byte> bytes;  // as in a file
    std::vector<float> values;
    std::vector<std::byte> rows_held;
    ArrangedMatrix arranged;
};

std::vector<float> random_x(std::size_t cols) {
    std::mt19937 generator(static_cast<unsigned>(cols));
    std::normal_distribution<float> normal;
    std::vector<float> x(cols);
    for (float& value : x) value = normal(generator);
    return x;
}

std::vector<float> multiply(const Kernels& kernels, const ArrangedMatrix& a, const std::vector<float>& x, std::size_t rows) {
    std::vector<float> y(rows, -1.0F);
    kernels.gemv_rows(a, x.data(), x.size(), y.data(), 0, rows);
    return y;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The n / 16 additions to a lane, the tree's four, a product after it and its n mod 16 additions round in turn, each by at most u = 2^-24
// of its result: |error| <= gamma_k sum |a| |x|, gamma_k = k u / (1 - k u), k = n / 16 + n mod 16 + 5. One more for the reference, whose
// own error is below n 2^-53. Where a product is subnormal it loses up to 2^-150 instead.
double error_bound(std::size_t n, double magnitudes) {
    const double k = static_cast<double>(n / 16 + n % 16 + 6);
    return k * 0x1p-24 / (1.0 - k * 0x1p-24) * magnitudes + static_cast<double>(n) * 0x1p-150;
}

void check_error(const Matrix& a, const std::vector<float>& x, const std::vector<float>& y) {
    for (std::size_t r = 0; r < y.size(); ++r) {
        double expected = 0.0;
        double magnitudes = 0.0;
        for (std::size_t c = 0; c < x.size(); ++c) {
            const double product = double{a.values[r * x.size() + c]} * double{x[c]};
            expected += product;
            magnitudes += std::fabs(product);
        }
        CAPTURE(r);
        REQUIRE(std::fabs(double{y[r]} - expected) <= error_bound(x.size(), magnitudes));
    }
}

void check_shape(TensorType type, std::size_t rows, std::size_t cols, Scales scales) {
    INFO(info_of(type).name << " " << rows << " x " << cols << ", scales " << static_cast<int>(scales));
    const Matrix a(type, rows, cols, scales);
    const std::vector<float> x = random_x(cols);
    const ArrangedMatrix plain{reinterpret_cast<const std::byte*>(a.values.data()), TensorType::f32};
    const std::vector<float> expected = multiply(base::table(), plain, x, rows);
    check_error(a, x, expected);
    for (const Kernels* kernels : tables()) {
        INFO(kernels->name);
        REQUIRE(same_bits(multiply(*kernels, a.arranged, x, rows), expected));
        std::vector<float> split(rows);
        for (std::size_t edge = 0; edge <= rows; ++edge) {
            std::fill(split.begin(), split.end(), -1.0F);
            kernels->gemv_rows(a.arranged, x.data(), cols, split.data(), 0, edge);
            kernels->gemv_rows(a.arranged, x.data(), cols, split.data(), edge, rows);
            REQUIRE(same_bits(split, expected));
        }
    }
}

}  // namespace

TEST_CASE("products with stored matrices", "[engine][kernels][gemv]") {
    const auto type = static_cast<TensorType>(GENERATE(range(0, static_cast<int>(tensor_type_count))));
    const Scales scales = GENERATE(Scales::usual, Scales::largest, Scales::subnormal);
    const std::size_t block = info_of(type).block_elements;
    // One block, a few, a run of sixteen and its neighbours, many; for types without blocks also ragged ends.
    std::vector<std::size_t> columns;
    for (const std::size_t blocks : {1U, 2U, 15U, 16U, 17U, 33U, 100U}) columns.push_back(blocks * block);
    for (const std::size_t cols : columns) {
        for (const std::size_t rows : {1U, 3U, 4U, 5U, 8U, 13U}) check_shape(type, rows, cols, scales);
    }
    check_shape(type, 2, 17408, scales);
}

TEST_CASE("a product writes only the rows it was asked for", "[engine][kernels][gemv]") {
    const auto type = static_cast<TensorType>(GENERATE(range(0, static_cast<int>(tensor_type_count))));
    const Matrix a(type, 12, 256, Scales::usual);
    const std::vector<float> x = random_x(256);
    for (const Kernels* kernels : tables()) {
        std::vector<float> y(12, 7.0F);
        kernels->gemv_rows(a.arranged, x.data(), 256, y.data(), 3, 9);
        for (const std::size_t r : {0U, 1U, 2U, 9U, 10U, 11U}) CHECK(y[r] == 7.0F);
    }
}

// Sums so near the middle of two f32 numbers that an intermediate rounding to double decides wrongly.
TEST_CASE("a product is added with one rounding", "[engine][kernels][gemv]") {
    struct Sum {
        float a, b, c, expected;
    };
    // (1 + e)(1 - e) = 1 - 2^-46 for e = 2^-23, and (2^23 - 2^12 + 1)(2^23 + 2^12 + 1) = 2^46 + 1.
    constexpr float e = 0x1p-23F;
    constexpr float small = 8388608.0F - 4096.0F + 1.0F;
    constexpr float large = 8388608.0F + 4096.0F + 1.0F;
    const float sign = GENERATE(1.0F, -1.0F);
    for (const Sum& s : {Sum{(1 + e) * 0x1p-24F, 1 - e, 1 + e, 1 + e}, Sum{small * 0x1p-46F, large * 0x1p-24F, 1, 1 + e},
                         Sum{-(1 + e) * 0x1p-25F, 1 - e, 1, 1}, Sum{-small * 0x1p-46F, large * 0x1p-25F, 1, 1 - e / 2}}) {
        std::vector<float> a(32);
        std::vector<float> x(32);
        a[0] = sign * s.c;  // the first of lane 0
        x[0] = 1;
        a[16] = sign * s.a;  // the second
        x[16] = s.b;
        REQUIRE(std::fma(a[16], x[16], a[0]) == sign * s.expected);
        for (const Kernels* kernels : tables()) {
            INFO(kernels->name);
            CHECK(multiply(*kernels, {reinterpret_cast<const std::byte*>(a.data()), TensorType::f32}, x, 1)[0] == sign * s.expected);
        }
    }
}
