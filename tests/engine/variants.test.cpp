// Variants differ in speed only: the same bits for every operator, shape, thread count and build.
#include <cmath>
#include <random>

#include "tests/engine/engine_under_test.hpp"

using namespace kestrel::test;

namespace {

std::vector<float> random_values(std::mt19937& generator, std::size_t count, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> values(count);
    for (float& value : values) value = uniform(generator);
    return values;
}

kestrel_tensor tensor(std::vector<float>& values, std::initializer_list<std::uint64_t> shape) {
    kestrel_tensor t{};
    t.data = values.data();
    t.rank = static_cast<std::uint32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), t.shape);
    return t;
}

struct Shape {
    std::uint64_t k_heads, heads, kd, vd;
};

struct DeltaCase {
    explicit DeltaCase(const Shape& shape) : s(shape) {
        std::mt19937 generator(static_cast<unsigned>(1 + s.heads + s.kd + s.vd));
        state = random_values(generator, s.heads * s.kd * s.vd, -1.0F, 1.0F);
        q = random_values(generator, s.k_heads * s.kd, -0.3F, 0.3F);
        k = random_values(generator, s.k_heads * s.kd, -0.3F, 0.3F);
        v = random_values(generator, s.heads * s.vd, -1.0F, 1.0F);
        g = random_values(generator, s.heads, -2.0F, 0.0F);
        beta = random_values(generator, s.heads, 0.0F, 1.0F);
    }

    kestrel_status run(const kestrel_engine_api& api, const char* variant, std::vector<float>& new_state, std::vector<float>& out) {
        new_state.assign(state.size(), -7.0F);
        out.assign(v.size(), -7.0F);
        const kestrel_tensor inputs[] = {tensor(state, {s.heads, s.kd, s.vd}), tensor(q, {s.k_heads, s.kd}), tensor(k, {s.k_heads, s.kd}),
                                         tensor(v, {s.heads, s.vd}),           tensor(g, {s.heads}),         tensor(beta, {s.heads})};
        kestrel_tensor outputs[] = {tensor(new_state, {s.heads, s.kd, s.vd}), tensor(out, {s.heads, s.vd})};
        return capability<kestrel_operator>(api, KESTREL_CAP_OPERATOR).run("gdn_delta", variant, inputs, 6, outputs, 2);
    }

    // The definition, in double.
    [[nodiscard]] double worst_error(const std::vector<float>& new_state, const std::vector<float>& out) const {
        double worst = 0.0;
        for (std::uint64_t h = 0; h < s.heads; ++h) {
            const std::uint64_t kh = h / (s.heads / s.k_heads) * s.kd;
            for (std::uint64_t c = 0; c < s.vd; ++c) {
                double kv = 0.0;
                double o = 0.0;
                for (std::uint64_t i = 0; i < s.kd; ++i) {
                    kv += std::exp(double{g[h]}) * state[(h * s.kd + i) * s.vd + c] * k[kh + i];
                }
                const double d = (v[h * s.vd + c] - kv) * beta[h];
                for (std::uint64_t i = 0; i < s.kd; ++i) {
                    const std::uint64_t at = (h * s.kd + i) * s.vd + c;
                    const double updated = std::exp(double{g[h]}) * state[at] + k[kh + i] * d;
                    worst = std::max(worst, std::abs(updated - new_state[at]));
                    o += updated * q[kh + i];
                }
                worst = std::max(worst, std::abs(o - out[h * s.vd + c]));
            }
        }
        return worst;
    }

    Shape s;
    std::vector<float> state, q, k, v, g, beta;
};

struct Trace {
    std::vector<float> logits, hidden, final_norm;
    std::vector<std::byte> state;
    std::vector<std::int32_t> tokens;
    bool operator==(const Trace& other) const {
        return same_bits(logits, other.logits) && same_bits(hidden, other.hidden) && same_bits(final_norm, other.final_norm) &&
               same_bits(state, other.state) && tokens == other.tokens;
    }
};

Trace trace_of(const kestrel_engine_api& api, const Args& args, int tokens) {
    Engine engine(api, args);
    Trace trace;
    for (int t = 0; t < tokens; ++t) {
        trace.tokens.push_back(engine.decode((t * 37 + 11) % 128));
        const auto logits = engine.logits();
        trace.logits.insert(trace.logits.end(), logits.begin(), logits.end());
    }
    trace.hidden = engine.read(KESTREL_READ_HIDDEN);
    trace.final_norm = engine.read(KESTREL_READ_FINAL_NORM);
    trace.state = engine.save();
    return trace;
}

}  // namespace

TEST_CASE("gdn_delta: both variants give the same bits, and the defined values", "[engine][variants]") {
    const auto shape =
        GENERATE(Shape{1, 1, 1, 1}, Shape{1, 1, 33, 20}, Shape{2, 6, 33, 20}, Shape{1, 3, 16, 16}, Shape{2, 4, 5, 64}, Shape{1, 2, 7, 65},
                 Shape{3, 3, 24, 127}, Shape{2, 6, 128, 128}, Shape{1, 2, 200, 192}, Shape{1, 1, 512, 80}, Shape{2, 2, 3, 300});
    CAPTURE(shape.k_heads, shape.heads, shape.kd, shape.vd);
    DeltaCase delta(shape);
    std::vector<float> state_reg, state_ref, state_default, out_reg, out_ref, out_default;
    REQUIRE(delta.run(engine_api(), "reg", state_reg, out_reg) == KESTREL_OK);
    REQUIRE(delta.run(engine_api(), "ref", state_ref, out_ref) == KESTREL_OK);
    REQUIRE(delta.run(engine_api(), "", state_default, out_default) == KESTREL_OK);
    CHECK(same_bits(state_reg, state_ref));
    CHECK(same_bits(out_reg, out_ref));
    CHECK(same_bits(state_reg, state_default));
    CHECK(same_bits(out_reg, out_default));
    CHECK(delta.worst_error(state_reg, out_reg) < 2e-5);
}

TEST_CASE("gdn_delta: wrong calls are errors", "[engine][variants]") {
    const auto& op = capability<kestrel_operator>(engine_api(), KESTREL_CAP_OPERATOR);
    std::vector<float> state, out;
    DeltaCase too_wide({1, 1, 2, 4097});
    CHECK(too_wide.run(engine_api(), "ref", state, out) == KESTREL_UNSUPPORTED);
    CHECK(too_wide.run(engine_api(), "reg", state, out) == KESTREL_OK);
    DeltaCase uneven({2, 3, 4, 4});
    CHECK(uneven.run(engine_api(), "", state, out) == KESTREL_BAD_ARGUMENT);
    DeltaCase good({1, 1, 4, 4});
    CHECK(good.run(engine_api(), "fast", state, out) == KESTREL_UNSUPPORTED);
    CHECK(op.run("nothing", "", nullptr, 0, nullptr, 0) == KESTREL_BAD_ARGUMENT);

    std::vector<float> values(64);
    kestrel_tensor inputs[] = {tensor(values, {2, 4}), tensor(values, {2, 4}), tensor(values, {5})};
    kestrel_tensor outputs[] = {tensor(values, {2}), tensor(values, {2})};
    CHECK(op.run("nothing", "", inputs, 3, outputs, 2) == KESTREL_UNSUPPORTED);
    CHECK(op.run("f32_gemv2", "", inputs, 3, outputs, 2) == KESTREL_BAD_ARGUMENT);
    CHECK(std::string(engine_api().last_error()).find("[4]") != std::string::npos);
    CHECK(op.run("f32_gemv2", "", inputs, 2, outputs, 2) == KESTREL_BAD_ARGUMENT);
    inputs[0].shape[0] = std::uint64_t{1} << 60;
    CHECK(op.run("f32_gemv2", "", inputs, 3, outputs, 2) == KESTREL_BAD_ARGUMENT);
}

TEST_CASE("f32_gemv2: one pass and two passes give the same bits", "[engine][variants]") {
    const auto [rows, cols] = GENERATE(table<std::uint64_t, std::uint64_t>({{1, 1}, {5, 17}, {48, 5120}, {6, 64}, {7, 33}, {4, 16}}));
    CAPTURE(rows, cols);
    std::mt19937 generator(5);
    auto a = random_values(generator, rows * cols, -1.0F, 1.0F);
    auto b = random_values(generator, rows * cols, -1.0F, 1.0F);
    auto x = random_values(generator, cols, -1.0F, 1.0F);
    std::vector<float> ya(rows, 9.0F), yb(rows, 9.0F), za(rows, 8.0F), zb(rows, 8.0F);
    const kestrel_tensor inputs[] = {tensor(a, {rows, cols}), tensor(b, {rows, cols}), tensor(x, {cols})};
    kestrel_tensor fused[] = {tensor(ya, {rows}), tensor(yb, {rows})};
    kestrel_tensor separate[] = {tensor(za, {rows}), tensor(zb, {rows})};
    REQUIRE(capability<kestrel_operator>(engine_api(), KESTREL_CAP_OPERATOR).run("f32_gemv2", "", inputs, 3, fused, 2) == KESTREL_OK);
    REQUIRE(capability<kestrel_operator>(baseline_api(), KESTREL_CAP_OPERATOR).run("f32_gemv2", "", inputs, 3, separate, 2) == KESTREL_OK);
    CHECK(same_bits(ya, za));
    CHECK(same_bits(yb, zb));
    for (std::uint64_t r = 0; r < rows; ++r) {
        double exact_a = 0.0;
        double exact_b = 0.0;
        for (std::uint64_t c = 0; c < cols; ++c) {
            exact_a += double{a[r * cols + c]} * x[c];
            exact_b += double{b[r * cols + c]} * x[c];
        }
        CHECK(ya[r] == Approx(exact_a).margin(1e-4));
        CHECK(yb[r] == Approx(exact_b).margin(1e-4));
    }
}

TEST_CASE("whole model: variants, builds and thread counts give the same bits", "[engine][variants]") {
    const std::string model = GENERATE(description("mini-64l"), checkpoint("f32-4l").string(), checkpoint("bf16-64l").string());
    CAPTURE(model);
    const Args one(model);
    const Trace expected = trace_of(engine_api(), one, 12);
    const Args ref(model, "ref");
    CHECK(trace_of(engine_api(), ref, 12) == expected);
    Args two(model);
    CHECK(trace_of(engine_api(), two.threads(2), 12) == expected);
    Args five_ref(model, "ref");
    CHECK(trace_of(engine_api(), five_ref.threads(5), 12) == expected);
    CHECK(trace_of(baseline_api(), one, 12) == expected);
    Args baseline_two(model, "ref");
    CHECK(trace_of(baseline_api(), baseline_two.threads(2), 12) == expected);
}
