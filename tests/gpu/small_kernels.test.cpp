// Norms, convolution, gates, rotation, attention and the choice of a token, against the same in double.
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

double sum_of_squares(const float* x, std::size_t n) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += double{x[i]} * x[i];
    return sum;
}

cuda::Buffer<cuda::Control> control_at(std::int32_t position) {
    auto control = cuda::make_buffer<cuda::Control>(1);
    const cuda::Control host{.token = 0, .position = position, .next = -1, .unused = 0};
    cuda::check(cudaMemcpy(control.get(), &host, sizeof host, cudaMemcpyHostToDevice), "sending test data");
    return control;
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
    cuda::launch_rms_norm(xs.get(), ws.get(), n, eps, y.get(), nullptr, nullptr);
    std::vector<double> expected(n);
    const double factor = 1.0 / std::sqrt(sum_of_squares(x.data(), n) / static_cast<double>(n) + eps);
    for (std::size_t i = 0; i < n; ++i) expected[i] = x[i] * factor * w[i];
    check_relative(y.values(), expected, static_cast<double>(n));

    const OnDevice l2(x);
    cuda::launch_l2_norm(l2.get(), rows, n, 2, 0.25F, nullptr);
    const OnDevice gated(x);
    cuda::launch_gated_rms_norm(gated.get(), ws.get(), gates.get(), rows, n, eps, nullptr, nullptr);
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

TEST_CASE("attention of one token after another", "[gpu]") {
    const unsigned dim = GENERATE(8U, 32U, 256U);
    const unsigned heads = 6, kv_heads = 2, capacity = 40, pairs = dim / 8;
    CAPTURE(dim);
    Random random(dim);
    const std::vector<double> inverse{[&] {
        std::vector<double> values;
        for (unsigned i = 0; i < pairs; ++i) values.push_back(std::pow(1e7, -2.0 * i / (2.0 * pairs)));
        return values;
    }()};
    const auto frequencies = cuda::make_buffer<double>(pairs);
    cuda::check(cudaMemcpy(frequencies.get(), inverse.data(), frequencies.bytes(), cudaMemcpyHostToDevice), "sending test data");
    const auto q_norm = random(dim, 0.5F, 1.5F);
    const auto k_norm = random(dim, 0.5F, 1.5F);
    const OnDevice q_norms(q_norm), k_norms(k_norm), rotation(2 * pairs), q(heads * dim), scores(heads * capacity), out(heads * dim);
    const OnDevice keys(kv_heads * capacity * dim), values(kv_heads * capacity * dim);
    std::vector<std::vector<double>> all_keys, all_values;  // per position [kv_heads][dim]
    const auto norm_rope = [&](const float* x, const std::vector<float>& w, unsigned position, double* to) {
        const double factor = 1.0 / std::sqrt(sum_of_squares(x, dim) / dim + 1e-6F);
        for (unsigned i = 0; i < dim; ++i) to[i] = x[i] * factor * w[i];
        for (unsigned i = 0; i < pairs; ++i) {
            const double angle = position * inverse[i];
            const double first = to[i];
            const double second = to[i + pairs];
            to[i] = first * std::cos(angle) - second * std::sin(angle);
            to[i + pairs] = second * std::cos(angle) + first * std::sin(angle);
        }
    };
    for (unsigned position = 0; position < capacity; ++position) {
        const auto q_and_gate = random(2 * heads * dim);
        const auto k = random(kv_heads * dim);
        const auto v = random(kv_heads * dim);
        const OnDevice projected(q_and_gate), ks(k), vs(v);
        const auto control = control_at(static_cast<std::int32_t>(position));
        const cuda::AttentionHeads a{projected.get(),
                                     ks.get(),
                                     vs.get(),
                                     q_norms.get(),
                                     k_norms.get(),
                                     rotation.get(),
                                     rotation.get() + pairs,
                                     q.get(),
                                     keys.get(),
                                     values.get(),
                                     scores.get(),
                                     out.get(),
                                     heads,
                                     kv_heads,
                                     dim,
                                     pairs,
                                     capacity,
                                     1e-6F};
        cuda::launch_rotation(control.get(), frequencies.get(), pairs, rotation.get(), rotation.get() + pairs, nullptr);
        cuda::launch_qkv_norm_rope(a, control.get(), nullptr);
        cuda::launch_attend(a, control.get(), nullptr);

        all_keys.emplace_back(kv_heads * dim);
        all_values.emplace_back(v.begin(), v.end());
        for (unsigned h = 0; h < kv_heads; ++h) norm_rope(k.data() + h * dim, k_norm, position, all_keys.back().data() + h * dim);
        const std::vector<float> found = out.values();
        for (unsigned h = 0; h < heads; ++h) {
            std::vector<double> turned(dim);
            norm_rope(q_and_gate.data() + 2 * h * dim, q_norm, position, turned.data());
            const unsigned kv = h / (heads / kv_heads);
            std::vector<double> weights(position + 1);
            double total = 0.0;
            double largest_score = 0.0;
            for (unsigned p = 0; p <= position; ++p) {
                double score = 0.0;
                for (unsigned i = 0; i < dim; ++i) score += turned[i] * all_keys[p][kv * dim + i];
                score /= std::sqrt(static_cast<double>(dim));
                largest_score = std::max(largest_score, std::abs(score));
                weights[p] = std::exp(score);
                total += weights[p];
            }
            for (unsigned i = 0; i < dim; ++i) {
                double expected = 0.0;
                double magnitude = 0.0;
                for (unsigned p = 0; p <= position; ++p) {
                    expected += weights[p] / total * all_values[p][kv * dim + i];
                    magnitude += weights[p] / total * std::abs(all_values[p][kv * dim + i]);
                }
                expected *= sigmoid(q_and_gate[(2 * h + 1) * dim + i]);
                // A score is a sum of dim products of two normalised vectors, |q| |k| <= 2.25 dim; its absolute error, that many half ulps
                // over sqrt(dim), is the relative error of a weight, twice with the normalisation. Then position + 1 additions.
                const double score_error = (dim / 16.0 + 64.0) * 2.25 * std::sqrt(static_cast<double>(dim)) + 4.0 * largest_score;
                REQUIRE(std::abs(found[h * dim + i] - expected) <= (2.0 * score_error + position + 40.0) * half_ulp * magnitude);
            }
        }
    }
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
