// The gated-delta-net step: both kernels give the same bits, and those of a step in double up to rounding.
#include <algorithm>

#include "tests/gpu/device.hpp"

using namespace kestrel;
using namespace kestrel::test;

namespace {

struct Shape {
    unsigned heads;
    unsigned k_heads;
    unsigned kd;
    unsigned vd;
    bool tiled;
};

struct Inputs {
    std::vector<float> state, q, k, v, g, beta;
};

Inputs inputs_for(const Shape& s) {
    Random random(s.heads * 100 + s.kd + s.vd);
    Inputs in;
    in.state = random(std::size_t{s.heads} * s.kd * s.vd);
    in.q = random(std::size_t{s.k_heads} * s.kd, -0.1F, 0.1F);
    in.k = random(std::size_t{s.k_heads} * s.kd, -0.2F, 0.2F);
    in.v = random(std::size_t{s.heads} * s.vd);
    in.g = random(s.heads, -1.0F, 0.0F);
    in.beta = random(s.heads, 0.0F, 1.0F);
    return in;
}

struct Outputs {
    std::vector<float> state, out;
};

Outputs run(const Shape& s, const Inputs& in, void (*launch)(const cuda::GdnStep&, const cuda::Queue&)) {
    const OnDevice state(in.state), q(in.q), k(in.k), v(in.v), g(in.g), beta(in.beta);
    const OnDevice out(std::size_t{s.heads} * s.vd);
    launch({.state = state.get(),
            .q = q.get(),
            .k = k.get(),
            .v = v.get(),
            .g = g.get(),
            .beta = beta.get(),
            .out = out.get(),
            .heads = s.heads,
            .k_heads = s.k_heads,
            .kd = s.kd,
            .vd = s.vd,
            .tiled = s.tiled},
           nullptr);
    return {state.values(), out.values()};
}

// Per column: the step in double, and the error that f32 may have. Each of the kd terms of kv is rounded three times (decay, product, sum),
// at most kd + 3 half ulps of their magnitudes in all, and expf errs by up to two more ulps; kv's error enters the new column times k, and
// that enters o.
void check_column(const Shape& s, const Inputs& in, const Outputs& found, unsigned h, unsigned c) {
    const unsigned kh = s.tiled ? h % s.k_heads : h / (s.heads / s.k_heads);
    const float* q = in.q.data() + std::size_t{kh} * s.kd;
    const float* k = in.k.data() + std::size_t{kh} * s.kd;
    const double alpha = std::exp(double{in.g[h]});
    const auto at = [&](unsigned i) { return (std::size_t{h} * s.kd + i) * s.vd + c; };
    double kv = 0.0;
    double kv_magnitude = 0.0;
    for (unsigned i = 0; i < s.kd; ++i) {
        kv += in.state[at(i)] * alpha * k[i];
        kv_magnitude += std::abs(in.state[at(i)] * alpha * k[i]);
    }
    const std::size_t column = std::size_t{h} * s.vd + c;
    const double steps = s.kd + 10.0;
    const double d = (in.v[column] - kv) * in.beta[h];
    const double d_error = steps * half_ulp * (kv_magnitude + std::abs(double{in.v[column]}));
    double o = 0.0;
    double o_error = 0.0;
    for (unsigned i = 0; i < s.kd; ++i) {
        const double t = in.state[at(i)] * alpha + k[i] * d;
        const double t_magnitude = std::abs(in.state[at(i)] * alpha) + std::abs(k[i] * d);
        const double t_error = 8.0 * half_ulp * t_magnitude + std::abs(k[i]) * d_error;
        REQUIRE(std::abs(found.state[at(i)] - t) <= t_error);
        o += t * q[i];
        o_error += std::abs(q[i]) * (t_error + steps * half_ulp * t_magnitude);
    }
    REQUIRE(std::abs(found.out[column] - o) <= o_error);
}

}  // namespace

TEST_CASE("the gated-delta-net step", "[gpu]") {
    const auto s = GENERATE(Shape{48, 16, 128, 128, false}, Shape{48, 16, 128, 128, true}, Shape{6, 2, 32, 32, false},
                            Shape{6, 2, 64, 64, true}, Shape{3, 1, 40, 24, false}, Shape{2, 2, 1, 7, false}, Shape{6, 3, 128, 64, true});
    CAPTURE(s.heads, s.k_heads, s.kd, s.vd, s.tiled);
    const Inputs in = inputs_for(s);
    const Outputs generic = run(s, in, cuda::launch_gdn_delta);
    for (unsigned h = 0; h < s.heads; ++h) {
        for (unsigned c = 0; c < s.vd; ++c) check_column(s, in, generic, h, c);
    }
    cuda::GdnStep step{};
    step.kd = s.kd;
    step.vd = s.vd;
    const bool square = s.kd == s.vd && (s.kd == 128 || s.kd == 64 || s.kd == 32);
    REQUIRE(cuda::gdn_delta_reg_serves(step) == square);
    if (!square) {
        CHECK_THROWS(run(s, in, cuda::launch_gdn_delta_reg));
        return;
    }
    const Outputs registers = run(s, in, cuda::launch_gdn_delta_reg);
    CHECK(same_bits(registers.state, generic.state));
    CHECK(same_bits(registers.out, generic.out));
}
