// What a gated-delta-net layer does before its step, in one launch: the same bits as in three.
#include <algorithm>
#include <cmath>

#include "tests/gpu/device.hpp"

using namespace kestrel;
using namespace kestrel::test;

namespace {

struct Shape {
    unsigned heads;
    unsigned k_heads;
    unsigned kd;
    unsigned vd;
    unsigned taps;
    [[nodiscard]] std::size_t key_width() const { return std::size_t{k_heads} * kd; }
    [[nodiscard]] std::size_t channels() const { return 2 * key_width() + std::size_t{heads} * vd; }
    [[nodiscard]] float q_scale() const { return 1.0F / std::sqrt(static_cast<float>(kd)); }
};

// What both ways change, on the device.
struct Arrays {
    Arrays(const Shape& s, Random& random)
        : state(random(std::max<std::size_t>(1, (s.taps - 1) * s.channels()))),
          mixed(random(s.channels(), -3.0F, 3.0F)),
          beta(random(s.heads, -6.0F, 6.0F)),
          g(random(s.heads, -3.0F, 25.0F)) {}
    OnDevice state, mixed, beta, g;
};

}  // namespace

TEST_CASE("the inputs of the recurrence in one launch", "[gpu]") {
    const auto s = GENERATE(Shape{48, 16, 128, 128, 4}, Shape{6, 2, 64, 64, 4}, Shape{6, 2, 20, 12, 4}, Shape{6, 3, 128, 64, 3},
                            Shape{4, 2, 64, 12, 2}, Shape{3, 1, 20, 128, 1}, Shape{2, 1, 300, 7, 4}, Shape{200, 1, 32, 1, 5});
    CAPTURE(s.heads, s.k_heads, s.kd, s.vd, s.taps);
    Random weights(s.kd + s.taps);
    const OnDevice conv(weights(s.taps * s.channels())), rate(weights(s.heads, -2.0F, -0.1F)), dt_bias(weights(s.heads));
    Random random(s.heads);
    Random same_random(s.heads);
    const Arrays separate(s, random);
    const Arrays fused(s, same_random);
    REQUIRE(same_bits(separate.mixed.values(), fused.mixed.values()));
    for (int step = 0; step < 3; ++step) {  // each on the state and the outputs of the one before
        cuda::launch_conv_silu(separate.state.get(), conv.get(), separate.mixed.get(), s.channels(), s.taps, nullptr);
        cuda::launch_l2_norm(separate.mixed.get(), std::size_t{2} * s.k_heads, s.kd, s.k_heads, s.q_scale(), nullptr);
        cuda::launch_gdn_beta_g(separate.beta.get(), separate.g.get(), rate.get(), dt_bias.get(), s.heads, nullptr);
        const std::vector<float> before = fused.mixed.values();
        cuda::launch_gdn_inputs({.conv_state = fused.state.get(),
                                 .conv = conv.get(),
                                 .mixed = fused.mixed.get(),
                                 .beta = fused.beta.get(),
                                 .g = fused.g.get(),
                                 .rate = rate.get(),
                                 .dt_bias = dt_bias.get(),
                                 .heads = s.heads,
                                 .k_heads = s.k_heads,
                                 .kd = s.kd,
                                 .vd = s.vd,
                                 .taps = s.taps,
                                 .q_scale = s.q_scale()},
                                nullptr);
        CHECK(same_bits(fused.mixed.values(), separate.mixed.values()));
        CHECK(same_bits(fused.state.values(), separate.state.values()));
        CHECK(same_bits(fused.beta.values(), separate.beta.values()));
        CHECK(same_bits(fused.g.values(), separate.g.values()));
        CHECK_FALSE(same_bits(fused.mixed.values(), before));
    }
}

TEST_CASE("the launch of the recurrence's inputs refuses what it cannot take", "[gpu]") {
    cuda::GdnInputs in{};
    in.heads = in.k_heads = in.vd = in.taps = 1;
    CHECK_THROWS(cuda::launch_gdn_inputs(in, nullptr));
    in.kd = 6145;
    CHECK_THROWS(cuda::launch_gdn_inputs(in, nullptr));
    in.kd = 1;
    in.heads = 0x40000000;
    in.taps = 2;
    CHECK_THROWS(cuda::launch_gdn_inputs(in, nullptr));
}
