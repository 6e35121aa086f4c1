#include "engine/truth/steps.hpp"

#include <utility>

namespace kestrel::truth {
namespace {

void round_all(Out values) {
    for (double& value : values) value = static_cast<double>(static_cast<float>(value));
}

Vector rounded(Vector values) {
    round_all(values);
    return values;
}

}  // namespace

Steps rounded_steps() {
    Steps steps;
    steps.multiply = [](const StoredTensor& matrix, std::size_t rows, In x) { return rounded(multiply(matrix, rows, x)); };
    steps.add = [](Out h, In y) {
        add(h, y);
        round_all(h);
    };
    steps.rms_norm = [](In x, In w, double eps) { return rounded(rms_norm(x, w, eps)); };
    steps.conv_silu = [](Out state, In w, In x) { return rounded(conv_silu(state, w, x)); };
    steps.gates = [](In b, In a, In rate, In dt_bias) {
        Gates out = gates(b, a, rate, dt_bias);
        round_all(out.beta);
        round_all(out.decay);
        return out;
    };
    steps.l2_norm = [](In x) { return rounded(l2_norm(x)); };
    steps.gdn_delta = [](Out state, In q, In k, In v, double decay, double beta) {
        Vector out = gdn_delta(state, q, k, v, decay, beta);
        round_all(state);
        return rounded(std::move(out));
    };
    steps.gated_norm = [](In x, In w, In z, double eps) { return rounded(gated_norm(x, w, z, eps)); };
    steps.rotate = [](In head, std::size_t rotary_dim, double theta, std::size_t position) {
        return rounded(rotate(head, rotary_dim, theta, position));
    };
    steps.attention = [](In q, In gate, In keys, In values, std::size_t heads, std::size_t kv_heads, std::size_t dim) {
        return rounded(attention(q, gate, keys, values, heads, kv_heads, dim));
    };
    steps.gated = [](In gate, In up) { return rounded(gated(gate, up)); };
    return steps;
}

}  // namespace kestrel::truth
