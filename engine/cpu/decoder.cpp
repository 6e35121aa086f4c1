#include "engine/cpu/decoder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "engine/error.hpp"

namespace kestrel::cpu {
namespace {

// Above this e^-x is lost in f32; the bound that the reference implementations use.
constexpr double softplus_linear_from = 20.0;

double softplus(double x) {
    return x > softplus_linear_from ? x : std::log1p(std::exp(x));
}

}  // namespace

Decoder::Decoder(ModelDims dims, const WeightLayout& weight_layout, const std::byte* weights, float* workspace,
                 const DecoderOptions& options)
    : dims_(std::move(dims)),
      options_(options),
      layout_(dims_, options.max_positions),
      weights_(dims_, weight_layout, weights),
      workspace_(workspace),
      kernel_(kernels()),
      pool_(options.threads),
      shape_id_(weight_layout.shape_hash()) {
    if (options_.gdn == GdnVariant::ref && dims_.v_dim > gdn_max_value_dim) {
        fail(KESTREL_UNSUPPORTED, "a linear value dimension of " + std::to_string(dims_.v_dim) + " is above the " +
                                      std::to_string(gdn_max_value_dim) + " that VLLM_CUDA_GDN_DELTA=ref takes");
    }
    std::array<std::uint32_t, 2> count{};
    for (const bool full : dims_.full_attention) number_in_kind_.push_back(count[full ? 1 : 0]++);
    const std::uint32_t pairs = dims_.rotary_dim / 2;
    for (std::uint32_t i = 0; i < pairs; ++i) {
        inverse_frequency_.push_back(std::pow(dims_.rope_theta, -2.0 * i / dims_.rotary_dim));
    }
    cosine_.resize(pairs);
    sine_.resize(pairs);
    reset();
}

ArrangedMatrix Decoder::matrix(std::uint32_t layer, Role role) const {
    const StoredTensor held = weights_.at(layer, role);
    return {held.data, held.type};
}

void Decoder::embed(std::int32_t token, float* hidden) {
    const ArrangedMatrix embeddings = matrix(0, Role::embed);
    const TensorTypeInfo& info = info_of(embeddings.type);
    embedding_row_.resize(bytes_of(info, dims_.hidden));
    const std::byte* row = embeddings.data + embedding_row_.size() * static_cast<std::size_t>(token);
    restore_blocks(embeddings.type, dims_.hidden, row, 0, dims_.hidden / info.block_elements, embedding_row_.data());
    dequantise(embeddings.type, embedding_row_.data(), {hidden, dims_.hidden});
}

void Decoder::reset() {
    // The caches need no clearing: only positions before position_ are read.
    std::fill(piece(layout_.gdn_state), piece(layout_.key_cache), 0.0F);
    position_ = 0;
    has_output_ = false;
}

std::int32_t Decoder::decode(std::int32_t token) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= dims_.vocab) {
        bad_argument("token " + std::to_string(token) + " is not in the vocabulary of " + std::to_string(dims_.vocab));
    }
    if (position_ >= options_.max_positions) {
        bad_argument("the key/value cache is full after " + std::to_string(position_) + " tokens; reset, or open with more positions");
    }
    set_rotation();
    float* hidden = piece(layout_.hidden);
    embed(token, hidden);
    const auto eps = static_cast<float>(dims_.rms_eps);
    for (std::uint32_t layer = 0; layer < dims_.layers(); ++layer) {
        kernel_.rms_norm(hidden, weight(layer, Role::input_norm), dims_.hidden, eps, piece(layout_.normed));
        if (dims_.full_attention[layer]) {
            attention_layer(layer);
        } else {
            gdn_layer(layer);
        }
        kernel_.add(hidden, piece(layout_.projected), dims_.hidden);
        kernel_.rms_norm(hidden, weight(layer, Role::post_norm), dims_.hidden, eps, piece(layout_.normed));
        mlp(layer);
        kernel_.add(hidden, piece(layout_.projected), dims_.hidden);
    }
    kernel_.rms_norm(hidden, weight(0, Role::final_norm), dims_.hidden, eps, piece(layout_.final_norm));
    const Projection head[] = {{matrix(0, Role::head), piece(layout_.logits), dims_.vocab}};
    project(pool_, kernel_, head, piece(layout_.final_norm), dims_.hidden);
    ++position_;
    has_output_ = true;
    return static_cast<std::int32_t>(largest(logits()));
}

GdnDelta Decoder::delta_step(std::uint32_t layer) const {
    const float* q = piece(layout_.mixed);
    const float* k = q + dims_.key_width();
    return {.state = piece(layout_.gdn_state) + number_in_kind_[layer] * layout_.gdn_state_stride,
            .q = q,
            .k = k,
            .v = k + dims_.key_width(),
            .alpha = piece(layout_.alpha),
            .beta = piece(layout_.beta),
            .out = piece(layout_.mixer_out),
            .heads = dims_.v_heads,
            .k_heads = dims_.k_heads,
            .kd = dims_.k_dim,
            .vd = dims_.v_dim,
            .order = dims_.head_order};
}

// From the projections b and a to beta = sigmoid(b) and the decay exp(decay_rate softplus(a + dt_bias)). A few numbers per
// layer, so the library's double functions are affordable; rounding to f32 hides the last-bit differences between its versions.
void Decoder::gdn_gates(std::uint32_t layer) {
    float* alpha = piece(layout_.alpha);
    kernel_.sigmoid(piece(layout_.beta), dims_.v_heads);
    const float* dt_bias = weight(layer, Role::dt_bias);
    const float* rate = weight(layer, Role::decay_rate);
    for (std::uint32_t h = 0; h < dims_.v_heads; ++h) {
        alpha[h] = static_cast<float>(std::exp(rate[h] * softplus(static_cast<double>(alpha[h]) + dt_bias[h])));
    }
}

void Decoder::gdn_layer(std::uint32_t layer) {
    const float* x = piece(layout_.normed);
    float* mixed = piece(layout_.mixed);
    project_convolved(
        pool_, kernel_, {matrix(layer, Role::qkv), mixed, dims_.conv_channels()},
        {piece(layout_.conv_state) + number_in_kind_[layer] * layout_.conv_state_stride, weight(layer, Role::conv), dims_.conv_taps},
        {matrix(layer, Role::z), piece(layout_.z), dims_.value_width()}, x, dims_.hidden);
    f32_gemv_pair(pool_, kernel_, weight(layer, Role::beta), weight(layer, Role::alpha), x, dims_.v_heads, dims_.hidden,
                  piece(layout_.beta), piece(layout_.alpha));
    gdn_gates(layer);

    const float q_scale = 1.0F / std::sqrt(static_cast<float>(dims_.k_dim));
    for (std::uint32_t h = 0; h < dims_.k_heads; ++h) {
        kernel_.l2_norm(mixed + std::size_t{h} * dims_.k_dim, dims_.k_dim, q_scale);
        kernel_.l2_norm(mixed + dims_.key_width() + std::size_t{h} * dims_.k_dim, dims_.k_dim, 1.0F);
    }
    gdn_delta(pool_, kernel_, options_.gdn, delta_step(layer));

    float* out = piece(layout_.mixer_out);
    for (std::uint32_t h = 0; h < dims_.v_heads; ++h) {
        float* head = out + std::size_t{h} * dims_.v_dim;
        kernel_.gated_rms_norm(head, weight(layer, Role::gated_norm), piece(layout_.z) + std::size_t{h} * dims_.v_dim, dims_.v_dim,
                               static_cast<float>(dims_.rms_eps), head);
    }
    const Projection down[] = {{matrix(layer, Role::gdn_out), piece(layout_.projected), dims_.hidden}};
    project(pool_, kernel_, down, out, dims_.value_width());
}

void Decoder::set_rotation() {
    for (std::size_t i = 0; i < inverse_frequency_.size(); ++i) {
        const double angle = position_ * inverse_frequency_[i];
        cosine_[i] = static_cast<float>(std::cos(angle));
        sine_[i] = static_cast<float>(std::sin(angle));
    }
}

// Pairs (i, i + rotary_dim / 2). The three position streams of the multi-section form are equal for text.
void Decoder::rotate(float* head) const {
    const std::size_t pairs = cosine_.size();
    for (std::size_t i = 0; i < pairs; ++i) {
        const float a = head[i];
        const float b = head[i + pairs];
        head[i] = a * cosine_[i] - b * sine_[i];
        head[i + pairs] = b * cosine_[i] + a * sine_[i];
    }
}

void Decoder::attention_layer(std::uint32_t layer) {
    const std::size_t dim = dims_.head_dim;
    const auto eps = static_cast<float>(dims_.rms_eps);
    float* q_and_gate = piece(layout_.q_and_gate);
    const Projection in[] = {{matrix(layer, Role::q), q_and_gate, 2 * dims_.heads * dim},
                             {matrix(layer, Role::k), piece(layout_.k), dims_.kv_heads * dim},
                             {matrix(layer, Role::v), piece(layout_.v), dims_.kv_heads * dim}};
    project(pool_, kernel_, in, piece(layout_.normed), dims_.hidden);

    float* q = piece(layout_.q);
    for (std::uint32_t h = 0; h < dims_.heads; ++h) {
        kernel_.rms_norm(q_and_gate + 2 * h * dim, weight(layer, Role::q_norm), dim, eps, q + h * dim);
        rotate(q + h * dim);
    }
    float* keys = piece(layout_.key_cache) + number_in_kind_[layer] * layout_.cache_stride;
    float* values = piece(layout_.value_cache) + number_in_kind_[layer] * layout_.cache_stride;
    for (std::uint32_t h = 0; h < dims_.kv_heads; ++h) {
        const std::size_t row = (std::size_t{h} * options_.max_positions + position_) * dim;
        kernel_.rms_norm(piece(layout_.k) + h * dim, weight(layer, Role::k_norm), dim, eps, keys + row);
        rotate(keys + row);
        const float* v = piece(layout_.v) + h * dim;
        std::copy(v, v + dim, values + row);
    }
    float* out = piece(layout_.mixer_out);
    attend(pool_, kernel_,
           {.q = q,
            .keys = keys,
            .values = values,
            .scores = piece(layout_.scores),
            .out = out,
            .heads = dims_.heads,
            .kv_heads = dims_.kv_heads,
            .dim = dim,
            .positions = std::size_t{position_} + 1,
            .capacity = options_.max_positions});
    for (std::uint32_t h = 0; h < dims_.heads; ++h) {
        kernel_.sigmoid_mul(out + h * dim, q_and_gate + (2 * h + 1) * dim, dim);
    }
    const Projection down[] = {{matrix(layer, Role::attention_out), piece(layout_.projected), dims_.hidden}};
    project(pool_, kernel_, down, out, dims_.heads * dim);
}

void Decoder::mlp(std::uint32_t layer) {
    float* act = piece(layout_.act);
    project_gated(pool_, kernel_, matrix(layer, Role::gate), matrix(layer, Role::up), piece(layout_.normed), dims_.intermediate,
                  dims_.hidden, act, piece(layout_.up));
    const Projection down[] = {{matrix(layer, Role::down), piece(layout_.projected), dims_.hidden}};
    project(pool_, kernel_, down, act, dims_.intermediate);
}

}  // namespace kestrel::cpu
