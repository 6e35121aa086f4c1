#include "engine/truth/decoder.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/error.hpp"

namespace kestrel::truth {
namespace {

void append(Vector& x, const Vector& y) {
    x.insert(x.end(), y.begin(), y.end());
}

}  // namespace

Decoder::Decoder(const Opening& opening) : Decoder(opening, opening.switches.at(0) != 0 ? rounded_steps() : Steps{}) {
    rounded_ = opening.switches.at(0) != 0;
}

Decoder::Decoder(const Opening& opening, const Steps& steps)
    : dims_(opening.dims),
      steps_(steps),
      weights_(dims_, opening.layout, opening.weights),
      layout_(dims_, opening.max_positions),
      sequence_(reinterpret_cast<double*>(opening.workspace)),
      shape_id_(opening.layout.shape_hash()),
      max_positions_(opening.max_positions) {
    reset();
}

std::int32_t Decoder::decode(std::int32_t token) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= dims_.vocab) {
        bad_argument("token " + std::to_string(token) + " is not in the vocabulary of " + std::to_string(dims_.vocab));
    }
    if (position_ >= max_positions_) {
        bad_argument("the key/value cache is full after " + std::to_string(position_) + " tokens; reset, or open with more positions");
    }
    Vector h = steps_.row_of(stored(0, Role::embed), static_cast<std::size_t>(token), dims_.hidden);
    for (std::uint32_t layer = 0; layer < dims_.layers(); ++layer) {
        const Vector x = norm(layer, Role::input_norm, h);
        steps_.add(h, dims_.full_attention[layer] ? attention_layer(layer, x) : gdn_layer(layer, x));
        steps_.add(h, mlp(layer, norm(layer, Role::post_norm, h)));
    }
    final_norm_ = norm(0, Role::final_norm, h);
    logits_ = multiply(0, Role::head, dims_.vocab, final_norm_);
    hidden_ = std::move(h);
    ++position_;
    return static_cast<std::int32_t>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
}

Vector Decoder::gdn_layer(std::uint32_t layer, In x) {
    const Vector mixed = multiply(layer, Role::qkv, dims_.conv_channels(), x);
    const Vector z = multiply(layer, Role::z, dims_.value_width(), x);
    const Vector b = multiply(layer, Role::beta, dims_.v_heads, x);
    const Vector a = multiply(layer, Role::alpha, dims_.v_heads, x);

    const Vector taps = values_of(layer, Role::conv, dims_.conv_taps * dims_.conv_channels());
    const Vector convolved = steps_.conv_silu(piece(layout_.samples(layer)), taps, mixed);
    const In q = In(convolved).first(dims_.key_width());
    const In k = In(convolved).subspan(dims_.key_width(), dims_.key_width());
    const In v = In(convolved).last(dims_.value_width());

    const Gates gates =
        steps_.gates(b, a, values_of(layer, Role::decay_rate, dims_.v_heads), values_of(layer, Role::dt_bias, dims_.v_heads));
    const Vector weight = values_of(layer, Role::gated_norm, dims_.v_dim);
    const Out states = piece(layout_.state(layer));
    const std::size_t state_size = std::size_t{dims_.k_dim} * dims_.v_dim;
    Vector out;
    for (std::size_t h = 0; h < dims_.v_heads; ++h) {
        const std::size_t kh = steps_.key_head(h, dims_.v_heads, dims_.k_heads, dims_.head_order);
        Vector query = steps_.l2_norm(q.subspan(kh * dims_.k_dim, dims_.k_dim));
        for (double& value : query) value /= std::sqrt(static_cast<double>(dims_.k_dim));
        const Vector key = steps_.l2_norm(k.subspan(kh * dims_.k_dim, dims_.k_dim));
        const Vector read = steps_.gdn_delta(states.subspan(h * state_size, state_size), query, key,
                                             v.subspan(h * dims_.v_dim, dims_.v_dim), gates.decay[h], gates.beta[h]);
        append(out, steps_.gated_norm(read, weight, In(z).subspan(h * dims_.v_dim, dims_.v_dim), dims_.rms_eps));
    }
    return multiply(layer, Role::gdn_out, dims_.hidden, out);
}

Vector Decoder::attention_layer(std::uint32_t layer, In x) {
    const std::size_t width = std::size_t{dims_.heads} * dims_.head_dim;
    const std::size_t kv_width = std::size_t{dims_.kv_heads} * dims_.head_dim;
    const QueryAndGate query = steps_.split_query(multiply(layer, Role::q, 2 * width, x), dims_.heads, dims_.head_dim);
    const Vector q = prepared_heads(layer, Role::q_norm, query.q);
    const Vector k = prepared_heads(layer, Role::k_norm, multiply(layer, Role::k, kv_width, x));
    const Vector v = multiply(layer, Role::v, kv_width, x);

    const Out keys = piece(layout_.keys(layer));
    const Out values = piece(layout_.values(layer));
    std::copy(k.begin(), k.end(), keys.begin() + static_cast<std::ptrdiff_t>(position_ * kv_width));
    std::copy(v.begin(), v.end(), values.begin() + static_cast<std::ptrdiff_t>(position_ * kv_width));
    const std::size_t used = (position_ + std::size_t{1}) * kv_width;
    const Vector out = steps_.attention(q, query.gate, keys.first(used), values.first(used), dims_.heads, dims_.kv_heads, dims_.head_dim);
    return multiply(layer, Role::attention_out, dims_.hidden, out);
}

Vector Decoder::prepared_heads(std::uint32_t layer, Role role, In heads) const {
    const Vector factor = values_of(layer, role, dims_.head_dim);
    Vector out;
    for (std::size_t first = 0; first < heads.size(); first += dims_.head_dim) {
        const Vector normed = steps_.rms_norm(heads.subspan(first, dims_.head_dim), factor, dims_.rms_eps);
        append(out, steps_.rotate(normed, dims_.rotary_dim, dims_.rope_theta, position_));
    }
    return out;
}

Vector Decoder::mlp(std::uint32_t layer, In x) const {
    const Vector gate = multiply(layer, Role::gate, dims_.intermediate, x);
    const Vector up = multiply(layer, Role::up, dims_.intermediate, x);
    return multiply(layer, Role::down, dims_.hidden, steps_.gated(gate, up));
}

Vector Decoder::multiply(std::uint32_t layer, Role role, std::size_t rows, In x) const {
    return steps_.multiply(stored(layer, role), rows, x);
}

Vector Decoder::norm(std::uint32_t layer, Role role, In x) const {
    return steps_.rms_norm(x, values_of(layer, role, x.size()), dims_.rms_eps);
}

StoredTensor Decoder::stored(std::uint32_t layer, Role role) const {
    return weights_.at(layer, role);
}

Vector Decoder::values_of(std::uint32_t layer, Role role, std::size_t count) const {
    return row_of(stored(layer, role), 0, count);
}

}  // namespace kestrel::truth
