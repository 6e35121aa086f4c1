// The kernels of all instruction sets give the same bits, so no result depends on the processor. They are compiled here, from the
// engine's own sources, because the library shows only the set that it chose.
#include "engine/cpu/kernels.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

using namespace kestrel::cpu;

namespace {

class Random {
  public:
    std::vector<float> operator()(std::size_t count, float low = -1.0F, float high = 1.0F) {
        std::uniform_real_distribution<float> uniform(low, high);
        std::vector<float> values(count);
        for (float& value : values) value = uniform(generator_);
        return values;
    }

  private:
    std::mt19937 generator_{17};
};

// What one kernel wrote, for one table.
using Run = std::function<std::vector<float>(const Kernels&)>;

void same_for_all(const Run& run) {
    const std::vector<float> expected = run(base::table());
    for (const float value : expected) REQUIRE(std::isfinite(value));
#if defined(__x86_64__)
    const auto check = [&](const Kernels& kernels) {
        const std::vector<float> found = run(kernels);
        CAPTURE(kernels.name);
        REQUIRE(found.size() == expected.size());
        CHECK(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0);
    };
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) check(avx2::table());
    if (__builtin_cpu_supports("avx512f")) check(avx512::table());
#endif
}

ArrangedMatrix f32_tensor(const std::vector<float>& values) {
    return {reinterpret_cast<const std::byte*>(values.data()), kestrel::TensorType::f32};
}

}  // namespace

TEST_CASE("matrix kernels", "[engine][kernels]") {
    const std::size_t cols = GENERATE(1U, 15U, 16U, 17U, 64U, 100U, 5120U);
    CAPTURE(cols);
    Random random;
    const auto a = random(7 * cols);
    const auto b = random(7 * cols);
    const auto x = random(cols);
    same_for_all([&](const Kernels& k) {
        std::vector<float> y(7);
        k.gemv_rows(f32_tensor(a), x.data(), cols, y.data(), 0, 7);
        return y;
    });
    // Rows in a group of four and rows alone are summed alike.
    std::vector<float> grouped(7);
    std::vector<float> alone(7);
    base::table().gemv_rows(f32_tensor(a), x.data(), cols, grouped.data(), 0, 7);
    for (std::size_t r = 0; r < 7; ++r) base::table().gemv_rows(f32_tensor(a), x.data(), cols, alone.data(), r, r + 1);
    CHECK(std::memcmp(grouped.data(), alone.data(), 7 * sizeof(float)) == 0);
#if !VLLM_GEMV_AB_BASELINE
    same_for_all([&](const Kernels& k) {
        std::vector<float> y(14);
        k.f32_gemv2(a.data(), b.data(), x.data(), 7, cols, y.data(), y.data() + 7, 0, 14);
        return y;
    });
#endif
}

TEST_CASE("norms and activations", "[engine][kernels]") {
    const std::size_t n = GENERATE(1U, 5U, 16U, 31U, 128U, 1000U);
    CAPTURE(n);
    Random random;
    const auto x = random(n, -30.0F, 30.0F);
    const auto w = random(n);
    const auto gate = random(n, -100.0F, 100.0F);
    same_for_all([&](const Kernels& k) {
        std::vector<float> y(2 * n);
        k.rms_norm(x.data(), w.data(), n, 1e-6F, y.data());
        k.gated_rms_norm(x.data(), w.data(), gate.data(), n, 1e-6F, y.data() + n);
        return y;
    });
    same_for_all([&](const Kernels& k) {
        std::vector<float> y = x;
        k.l2_norm(y.data(), n, 0.3F);
        k.add(y.data(), w.data(), n);
        k.sigmoid_mul(y.data(), gate.data(), n);
        return y;
    });
    same_for_all([&](const Kernels& k) {
        std::vector<float> y = gate;
        k.silu_mul(y.data(), x.data(), n);
        k.sigmoid(y.data(), n);
        return y;
    });
    std::vector<float> y = gate;
    base::table().sigmoid(y.data(), n);
    for (std::size_t i = 0; i < n; ++i) CHECK(y[i] == Approx(1.0 / (1.0 + std::exp(-double{gate[i]}))).epsilon(1e-6).margin(1e-37));
}

TEST_CASE("convolution and attention", "[engine][kernels]") {
    const std::size_t n = GENERATE(3U, 16U, 80U, 100U);
    CAPTURE(n);
    Random random;
    const auto state = random(3 * n);
    const auto w = random(4 * n);
    const auto x = random(n);
    const auto convolved = [&](const Kernels& k, std::size_t split) {
        std::vector<float> out = state;
        std::vector<float> y = x;
        k.conv_silu(out.data(), w.data(), y.data(), n, 4, y.data(), 0, split);
        k.conv_silu(out.data(), w.data(), y.data(), n, 4, y.data(), split, n);
        out.insert(out.end(), y.begin(), y.end());
        return out;
    };
    same_for_all([&](const Kernels& k) { return convolved(k, n); });
    CHECK(convolved(base::table(), n) == convolved(base::table(), 2));

    const std::size_t positions = GENERATE(1U, 16U, 45U);
    const auto keys = random(positions * n, -3.0F, 3.0F);
    const auto values = random(positions * n);
    same_for_all([&](const Kernels& k) {
        std::vector<float> scores(positions);
        std::vector<float> out(n);
        k.attend({x.data(), keys.data(), values.data(), scores.data(), out.data(), positions, n, 0.7F});
        return out;
    });
}

TEST_CASE("recurrent state", "[engine][kernels]") {
    const std::size_t vd = GENERATE(1U, 20U, 65U, 128U, 300U);
    CAPTURE(vd);
    constexpr std::size_t heads = 4, k_heads = 2, kd = 33;
    Random random;
    const auto state = random(heads * kd * vd);
    const auto q = random(k_heads * kd);
    const auto k = random(k_heads * kd);
    const auto v = random(heads * vd);
    const auto alpha = random(heads, 0.1F, 1.0F);
    const auto beta = random(heads, 0.0F, 1.0F);
    const auto step = [&](const Kernels& kernels, bool reg) {
        std::vector<float> s = state;
        std::vector<float> out(heads * vd);
        const GdnDelta d{s.data(), q.data(), k.data(), v.data(), alpha.data(), beta.data(), out.data(), heads, k_heads, kd, vd};
        const std::size_t tiles = heads * gdn_tiles_per_head(d);
        if (reg) {
            kernels.gdn_delta_reg(d, 0, 1);
            kernels.gdn_delta_reg(d, 1, tiles);
        } else {
            kernels.gdn_delta(d, 0, heads);
        }
        s.insert(s.end(), out.begin(), out.end());
        return s;
    };
    same_for_all([&](const Kernels& kernels) { return step(kernels, false); });
    same_for_all([&](const Kernels& kernels) { return step(kernels, true); });
    const auto ref = step(base::table(), false);
    const auto reg = step(base::table(), true);
    CHECK(std::memcmp(ref.data(), reg.data(), ref.size() * sizeof(float)) == 0);
}

// Last, and each with its own options: the files set the instruction set for what follows.
#pragma GCC push_options
#include "engine/cpu/kernels_base.cpp"
#undef KESTREL_ISA
#undef KESTREL_ISA_FLOATS
#undef KESTREL_ISA_NAME
#undef KESTREL_INLINE
#include "engine/cpu/kernels_avx2.cpp"
#pragma GCC pop_options
#undef KESTREL_ISA
#undef KESTREL_ISA_FLOATS
#undef KESTREL_ISA_NAME
#undef KESTREL_INLINE
#pragma GCC push_options
#include "engine/cpu/kernels_avx512.cpp"
#pragma GCC pop_options
