// Norms, convolution, gates and the choice of a token, against the same in double.
#include <algorithm>
#include <limits>

#include "tests/gpu/device.hpp"

using namespace kestrel;
using namespace kestrel::test;

namespace {

// expf, logf and rsqrt err by up to two ulps, a quotient or product by half of one; a sum of n squares by at most n / 32 + 37 half ulps, of
// which its root keeps half. In all below n / 64 + 32 half ulps of the value.
void check_relative(const std::vector<float>& found, const std::vector<double>& expected, double n = 1.0) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        CAPTURE(i, found[i], expected[i]);
        REQUIRE(std::abs(found[i] - expected[i]) <= (n / 64.0 + 32.0) * half_ulp * std::abs(expected[i]));
    }
}

}  // namespace

TEST_CASE("norms", "[gpu]") {
    const std::size_t n = GENERATE(1U, 5U, 32U, 128U, 1000U, 5120U);
    CAPTURE(n);
    Random random(static_cast<unsigned>(n));
    const std::size_t rows = 5;
    const auto x = random(rows * n, -3.0F, 3.0F);
    const auto w = random(n);
    const auto gate = random(rows * n, -4.0F, 4.0F);
    const float eps = 1e-6F;
    const OnDevice ws(w);
    const OnDevice gates(gate);

    const OnDevice xs(x);
    const OnDevice y(n);
    cuda::launch_rms_norm(xs.get(), ws.get(), n, eps, y.get(), nullptr);
    std::vector<double> expected(n);
    const double factor = 1.0 / std::sqrt(sum_of_squares(x.data(), n) / static_cast<double>(n) + eps);
    for (std::size_t i = 0; i < n; ++i) expected[i] = x[i] * factor * w[i];
    check_relative(y.values(), expected, static_cast<double>(n));

    const OnDevice l2(x);
    cuda::launch_l2_norm(l2.get(), rows, n, 2, 0.25F, nullptr);
    const OnDevice gated(x);
    cuda::launch_gated_rms_norm(gated.get(), ws.get(), gates.get(), rows, n, eps, nullptr);
    std::vector<double> expected_l2(rows * n);
    std::vector<double> expected_gated(rows * n);
    for (std::size_t r = 0; r < rows; ++r) {
        const double squares = sum_of_squares(x.data() + r * n, n);
        for (std::size_t i = r * n; i < (r + 1) * n; ++i) {
            expected_l2[i] = x[i] / std::sqrt(squares + 1e-6F) * (r < 2 ? 0.25 : 1.0);
            expected_gated[i] = w[i - r * n] * (x[i] / std::sqrt(squares / static_cast<double>(n) + eps)) * gate[i] * sigmoid(gate[i]);
        }
    }
    check_relative(l2.values(), expected_l2, static_cast<double>(n));
    check_relative(gated.values(), expected_gated, static_cast<double>(n));
}

TEST_CASE("convolution over time", "[gpu]") {
    const std::size_t channels = GENERATE(1U, 33U, 10240U);
    const std::size_t taps = GENERATE(1U, 2U, 4U);
    CAPTURE(channels, taps);
    Random random(static_cast<unsigned>(channels + taps));
    const auto w = random(taps * channels, 0.1F, 1.0F);  // one sign, so that no sum cancels and relative errors make sense
    const auto history = random(8 * channels, 0.1F, 1.0F);
    const OnDevice ws(w);
    const OnDevice state(std::vector<float>(std::max<std::size_t>(1, (taps - 1) * channels)));
    for (std::size_t step = 0; step < 8; ++step) {
        const auto first = history.begin() + static_cast<std::ptrdiff_t>(step * channels);
        const OnDevice x(std::vector<float>(first, first + static_cast<std::ptrdiff_t>(channels)));
        cuda::launch_conv_silu(state.get(), ws.get(), x.get(), channels, taps, nullptr);
        std::vector<double> expected(channels);
        for (std::size_t c = 0; c < channels; ++c) {
            double sum = 0.0;
            for (std::size_t back = 0; back < taps && back <= step; ++back) {
                sum += double{history[(step - back) * channels + c]} * w[(taps - 1 - back) * channels + c];
            }
            expected[c] = sum * sigmoid(sum);
        }
        check_relative(x.values(), expected);
    }
}

TEST_CASE("gates of the recurrence", "[gpu]") {
    Random random(5);
    const std::size_t heads = 48;
    const auto b = random(heads, -6.0F, 6.0F);
    auto a = random(heads, 0.0F, 3.0F);
    a[0] = 30.0F;  // where softplus is linear
    const auto rate = random(heads, -2.0F, -0.1F);
    const auto dt_bias = random(heads, 0.0F, 1.0F);
    const OnDevice bs(b), as(a), rates(rate), biases(dt_bias);
    cuda::launch_gdn_beta_g(bs.get(), as.get(), rates.get(), biases.get(), heads, nullptr);
    std::vector<double> beta(heads);
    std::vector<double> g(heads);
    for (std::size_t h = 0; h < heads; ++h) {
        beta[h] = sigmoid(b[h]);
        g[h] = rate[h] * std::log1p(std::exp(double{a[h]} + dt_bias[h]));
    }
    check_relative(bs.values(), beta);
    check_relative(as.values(), g);
}

TEST_CASE("the largest logit, the lowest among equals", "[gpu]") {
    const std::size_t n = GENERATE(1U, 2U, 256U, 2049U, 248320U);
    CAPTURE(n);
    Random random(static_cast<unsigned>(n));
    auto values = random(n);
    const auto scratch = cuda::make_buffer<std::byte>(cuda::argmax_scratch_bytes(n));
    const auto control = control_at(0);
    const auto chosen = [&] {
        const OnDevice on(values);
        cuda::launch_argmax(on.get(), n, scratch.get(), control.get(), nullptr);
        cuda::Control host{};
        cuda::check(cudaMemcpy(&host, control.get(), sizeof host, cudaMemcpyDeviceToHost), "fetching test data");
        return static_cast<std::size_t>(host.next);
    };
    CHECK(chosen() == static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin()));
    values[n - 1] = 2.0F;
    values[n / 2] = 2.0F;
    CHECK(chosen() == n / 2);
    values[n / 2] = std::numeric_limits<float>::quiet_NaN();
    if (n > 2) CHECK(chosen() == n - 1);
    std::fill(values.begin(), values.end(), -std::numeric_limits<float>::infinity());
    CHECK(chosen() == 0);
}
