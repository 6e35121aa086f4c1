// The arithmetic of one decoded token, in double, in the order in which a layer does it. Nothing here is fast; everything is meant to be
// checked by eye against the definition of the model family (transformers, models/qwen3_5/modular_qwen3_5.py).
//
// The decoder calls the steps through the table at the end, so that a test can put one wrong step in the place of a right one and see
// that the checks notice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/head_order.hpp"
#include "engine/tensor_type.hpp"

namespace kestrel::truth {

using Vector = std::vector<double>;
using In = std::span<const double>;
using Out = std::span<double>;

// Row `index` of a stored matrix of `cols` columns. Blocks are turned into f32 numbers first: these are the weights.
[[nodiscard]] Vector row_of(const StoredTensor& matrix, std::size_t index, std::size_t cols);

// matrix x, of `rows` rows.
[[nodiscard]] Vector multiply(const StoredTensor& matrix, std::size_t rows, In x);

// h += y: what a mixer or an MLP adds to the residual stream.
void add(Out h, In y);

// x / sqrt(mean(x^2) + eps) * w; w is the whole factor (a checkpoint that stores w - 1 has had the 1 added).
[[nodiscard]] Vector rms_norm(In x, In w, double eps);

// Depthwise causal convolution of one sample, then SiLU. w and the state are [taps][channels] and [taps - 1][channels]; tap 0 meets the
// oldest sample, the last tap x itself. The state then takes x in and drops its oldest.
[[nodiscard]] Vector conv_silu(Out state, In w, In x);

// Per value head: beta = sigmoid(b), decay = exp(rate softplus(a + dt_bias)), rate = -exp(A_log).
struct Gates {
    Vector beta;
    Vector decay;
};
[[nodiscard]] Gates gates(In b, In a, In rate, In dt_bias);

// The key head that value head h reads: h / (v_heads / k_heads) where a file groups the value heads of a key head, h % k_heads where it
// tiles them.
[[nodiscard]] std::size_t key_head(std::size_t h, std::size_t v_heads, std::size_t k_heads, HeadOrder order);

// x / sqrt(sum(x^2) + 1e-6).
[[nodiscard]] Vector l2_norm(In x);

// One head's step of the gated delta rule. S is [key][value] dimensions. S = decay S; d = beta (v - S^T k); S = S + k (x) d; returns S^T q.
[[nodiscard]] Vector gdn_delta(Out state, In q, In k, In v, double decay, double beta);

// One value head: w * rms_norm(x) * silu(z). This norm's w is the plain factor.
[[nodiscard]] Vector gated_norm(In x, In w, In z, double eps);

// The rows of q_proj hold, head after head, `dim` of the query and then `dim` of its gate.
struct QueryAndGate {
    Vector q;     // [heads][dim]
    Vector gate;  // [heads][dim]
};
[[nodiscard]] QueryAndGate split_query(In rows, std::size_t heads, std::size_t dim);

// Turns the pairs (i, i + rotary_dim / 2) of a head by position theta^(-2 i / rotary_dim); the rest of the head passes.
[[nodiscard]] Vector rotate(In head, std::size_t rotary_dim, double theta, std::size_t position);

// softmax(q k / sqrt(dim)) v of every head over all positions, times sigmoid(gate). q, gate [heads][dim]; keys, values
// [positions][kv_heads][dim]. Query head h reads key head h / (heads / kv_heads).
[[nodiscard]] Vector attention(In q, In gate, In keys, In values, std::size_t heads, std::size_t kv_heads, std::size_t dim);

// silu(gate) * up.
[[nodiscard]] Vector gated(In gate, In up);

struct Steps {
    decltype(&truth::row_of) row_of = truth::row_of;
    decltype(&truth::multiply) multiply = truth::multiply;
    decltype(&truth::add) add = truth::add;
    decltype(&truth::rms_norm) rms_norm = truth::rms_norm;
    decltype(&truth::conv_silu) conv_silu = truth::conv_silu;
    decltype(&truth::gates) gates = truth::gates;
    decltype(&truth::key_head) key_head = truth::key_head;
    decltype(&truth::l2_norm) l2_norm = truth::l2_norm;
    decltype(&truth::gdn_delta) gdn_delta = truth::gdn_delta;
    decltype(&truth::gated_norm) gated_norm = truth::gated_norm;
    decltype(&truth::split_query) split_query = truth::split_query;
    decltype(&truth::rotate) rotate = truth::rotate;
    decltype(&truth::attention) attention = truth::attention;
    decltype(&truth::gated) gated = truth::gated;
};

// The same steps with every result, and every state, rounded to f32: what even an engine with exact arithmetic inside its kernels would do
// to a model. How far that drifts from the unrounded result shows how much a model amplifies rounding.
[[nodiscard]] Steps rounded_steps();

}  // namespace kestrel::truth
