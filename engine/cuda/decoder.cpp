#include "engine/cuda/decoder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "engine/error.hpp"

namespace kestrel::cuda {
namespace {

std::vector<double> frequencies(const ModelDims& dims) {
    std::vector<double> values;
    for (std::uint32_t i = 0; i < dims.rotary_dim / 2; ++i) values.push_back(std::pow(dims.rope_theta, -2.0 * i / dims.rotary_dim));
    return values;
}

}  // namespace

Decoder::Decoder(const Opening& o, GdnVariant gdn, LaunchMode launch)
    : dims_(o.dims),
      gdn_(gdn),
      launch_(launch),
      max_positions_(o.max_positions),
      layout_(dims_, o.max_positions),
      weights_(dims_, o.layout, o.weights),
      workspace_(reinterpret_cast<float*>(o.workspace)),
      shape_id_(o.layout.shape_hash()),
      stream_(make_stream()),
      host_control_(make_pinned<Control>(1)),
      control_(make_buffer<Control>(1)),
      inverse_frequency_(make_buffer<double>(dims_.rotary_dim / 2)),
      rotation_(make_buffer<float>(dims_.rotary_dim)),
      argmax_scratch_(make_buffer<std::byte>(argmax_scratch_bytes(dims_.vocab))) {
    std::array<std::uint32_t, 2> count{};
    for (const bool full : dims_.full_attention) number_in_kind_.push_back(count[full ? 1 : 0]++);
    if (!gdn_delta_reg_serves(gdn_step(0))) gdn_ = GdnVariant::ref;
    const std::vector<double> inverse = frequencies(dims_);
    copy(inverse_frequency_.get(), inverse.data(), inverse_frequency_.bytes(), cudaMemcpyHostToDevice);
    *host_control_.get() = {};
    reset();
}

void Decoder::synchronize() const {
    check(cudaStreamSynchronize(stream_.get()), "waiting for the device");
}

void Decoder::copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const {
    check(cudaMemcpyAsync(to, from, bytes, kind, stream_.get()), "copying between host and device");
    synchronize();
}

void Decoder::reset() {
    // The caches need no clearing: only positions before position_ are read.
    const std::size_t floats = layout_.key_cache - layout_.gdn_state;
    check(cudaMemsetAsync(piece(layout_.gdn_state), 0, floats * sizeof(float), stream_.get()), "clearing the state");
    synchronize();
    position_ = 0;
    has_output_ = false;
}

std::int32_t Decoder::decode(std::int32_t token) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= dims_.vocab) {
        bad_argument("token " + std::to_string(token) + " is not in the vocabulary of " + std::to_string(dims_.vocab));
    }
    if (position_ >= max_positions_) {
        bad_argument("the key/value cache is full after " + std::to_string(position_) + " tokens; reset, or open with more positions");
    }
    host_control_.get()->token = token;
    host_control_.get()->position = static_cast<std::int32_t>(position_);
    if (launch_ == LaunchMode::graph) {
        if (!executable_) {
            cudaGraphExec_t executable = nullptr;
            check(cudaGraphInstantiate(&executable, captured(), 0), "instantiating the captured token");
            executable_ = GraphExec(executable);
        }
        check(cudaGraphLaunch(executable_.get(), stream_.get()), "replaying the captured token");
    } else {
        enqueue_token();
    }
    synchronize();
    ++position_;
    has_output_ = true;
    return host_control_.get()->next;
}

cudaGraph_t Decoder::captured() {
    if (graph_) return graph_.get();
    check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "starting to capture a token");
    cudaGraph_t graph = nullptr;
    try {
        enqueue_token();
    } catch (...) {
        (void)cudaStreamEndCapture(stream_.get(), &graph);  // or the stream could never be used again
        const Graph discarded(graph);
        throw;
    }
    check(cudaStreamEndCapture(stream_.get(), &graph), "capturing a token");
    graph_ = Graph(graph);
    return graph;
}

Matrix Decoder::matrix(std::uint32_t layer, Role role, std::uint64_t rows, std::uint64_t cols) const {
    const StoredTensor stored = weights_.at(layer, role);
    return {stored.data, stored.type, rows, cols};
}

void Decoder::gemv(std::uint32_t layer, Role role, std::uint64_t rows, std::uint64_t cols, const float* x, float* y, Store store) {
    launch_gemv(matrix(layer, role, rows, cols), x, y, store, stream_.get());
}

// Only addresses that stay the same until closing: a captured token is replayed for every position.
void Decoder::enqueue_token() {
    const cudaStream_t stream = stream_.get();
    check(cudaMemcpyAsync(control_.get(), host_control_.get(), sizeof(Control), cudaMemcpyHostToDevice, stream), "sending the token");
    const std::size_t pairs = dims_.rotary_dim / 2;
    const auto eps = static_cast<float>(dims_.rms_eps);
    launch_rotation(control_.get(), inverse_frequency_.get(), pairs, rotation_.get(), rotation_.get() + pairs, stream);
    float* hidden = piece(layout_.hidden);
    launch_embed(matrix(0, Role::embed, dims_.vocab, dims_.hidden), control_.get(), hidden, stream);
    for (std::uint32_t layer = 0; layer < dims_.layers(); ++layer) {
        launch_rms_norm(hidden, vector(layer, Role::input_norm), dims_.hidden, eps, piece(layout_.normed), stream);
        if (dims_.full_attention[layer]) {
            attention_layer(layer);
        } else {
            gdn_layer(layer);
        }
        launch_rms_norm(hidden, vector(layer, Role::post_norm), dims_.hidden, eps, piece(layout_.normed), stream);
        mlp(layer);
    }
    launch_rms_norm(hidden, vector(0, Role::final_norm), dims_.hidden, eps, piece(layout_.final_norm), stream);
    gemv(0, Role::head, dims_.vocab, dims_.hidden, piece(layout_.final_norm), piece(layout_.logits), Store::replace);
    launch_argmax(piece(layout_.logits), dims_.vocab, argmax_scratch_.get(), control_.get(), stream);
    check(cudaMemcpyAsync(host_control_.get(), control_.get(), sizeof(Control), cudaMemcpyDeviceToHost, stream), "fetching the next token");
}

GdnStep Decoder::gdn_step(std::uint32_t layer) const {
    const float* q = piece(layout_.mixed);
    const float* k = q + dims_.key_width();
    return {.state = piece(layout_.gdn_state) + number_in_kind_[layer] * layout_.gdn_state_stride,
            .q = q,
            .k = k,
            .v = k + dims_.key_width(),
            .g = piece(layout_.alpha),
            .beta = piece(layout_.beta),
            .out = piece(layout_.mixer_out),
            .heads = dims_.v_heads,
            .k_heads = dims_.k_heads,
            .kd = dims_.k_dim,
            .vd = dims_.v_dim,
            .tiled = dims_.head_order == HeadOrder::tiled};
}

void Decoder::gdn_layer(std::uint32_t layer) {
    const cudaStream_t stream = stream_.get();
    const float* x = piece(layout_.normed);
    float* mixed = piece(layout_.mixed);
    gemv(layer, Role::qkv, dims_.conv_channels(), dims_.hidden, x, mixed, Store::replace);
    gemv(layer, Role::z, dims_.value_width(), dims_.hidden, x, piece(layout_.z), Store::replace);
    launch_f32_gemv_pair(vector(layer, Role::beta), vector(layer, Role::alpha), x, dims_.v_heads, dims_.hidden, piece(layout_.beta),
                         piece(layout_.alpha), stream);
    launch_gdn_beta_g(piece(layout_.beta), piece(layout_.alpha), vector(layer, Role::decay_rate), vector(layer, Role::dt_bias),
                      dims_.v_heads, stream);
    launch_conv_silu(piece(layout_.conv_state) + number_in_kind_[layer] * layout_.conv_state_stride, vector(layer, Role::conv), mixed,
                     dims_.conv_channels(), dims_.conv_taps, stream);
    // q and k lie one after the other; only q is scaled.
    launch_l2_norm(mixed, std::size_t{2} * dims_.k_heads, dims_.k_dim, dims_.k_heads, 1.0F / std::sqrt(static_cast<float>(dims_.k_dim)),
                   stream);
    if (gdn_ == GdnVariant::reg) {
        launch_gdn_delta_reg(gdn_step(layer), stream);
    } else {
        launch_gdn_delta(gdn_step(layer), stream);
    }
    float* out = piece(layout_.mixer_out);
    launch_gated_rms_norm(out, vector(layer, Role::gated_norm), piece(layout_.z), dims_.v_heads, dims_.v_dim,
                          static_cast<float>(dims_.rms_eps), stream);
    gemv(layer, Role::gdn_out, dims_.hidden, dims_.value_width(), out, piece(layout_.hidden), Store::add);
}

void Decoder::attention_layer(std::uint32_t layer) {
    const float* x = piece(layout_.normed);
    const std::uint64_t width = std::uint64_t{dims_.heads} * dims_.head_dim;
    const std::uint64_t kv_width = std::uint64_t{dims_.kv_heads} * dims_.head_dim;
    const std::size_t cache = number_in_kind_[layer] * layout_.cache_stride;
    gemv(layer, Role::q, 2 * width, dims_.hidden, x, piece(layout_.q_and_gate), Store::replace);
    gemv(layer, Role::k, kv_width, dims_.hidden, x, piece(layout_.k), Store::replace);
    gemv(layer, Role::v, kv_width, dims_.hidden, x, piece(layout_.v), Store::replace);
    const std::uint32_t pairs = dims_.rotary_dim / 2;
    const AttentionHeads heads{.q_and_gate = piece(layout_.q_and_gate),
                               .k = piece(layout_.k),
                               .v = piece(layout_.v),
                               .q_norm = vector(layer, Role::q_norm),
                               .k_norm = vector(layer, Role::k_norm),
                               .cosine = rotation_.get(),
                               .sine = rotation_.get() + pairs,
                               .q = piece(layout_.q),
                               .keys = piece(layout_.key_cache) + cache,
                               .values = piece(layout_.value_cache) + cache,
                               .scores = piece(layout_.scores),
                               .out = piece(layout_.mixer_out),
                               .heads = dims_.heads,
                               .kv_heads = dims_.kv_heads,
                               .dim = dims_.head_dim,
                               .pairs = pairs,
                               .capacity = max_positions_,
                               .eps = static_cast<float>(dims_.rms_eps)};
    launch_qkv_norm_rope(heads, control_.get(), stream_.get());
    launch_attend(heads, control_.get(), stream_.get());
    gemv(layer, Role::attention_out, dims_.hidden, width, piece(layout_.mixer_out), piece(layout_.hidden), Store::add);
}

void Decoder::mlp(std::uint32_t layer) {
    const float* x = piece(layout_.normed);
    float* act = piece(layout_.act);
    gemv(layer, Role::gate, dims_.intermediate, dims_.hidden, x, act, Store::replace);
    gemv(layer, Role::up, dims_.intermediate, dims_.hidden, x, piece(layout_.up), Store::replace);
    launch_silu_mul(act, piece(layout_.up), dims_.intermediate, stream_.get());
    gemv(layer, Role::down, dims_.hidden, dims_.intermediate, act, piece(layout_.hidden), Store::add);
}

}  // namespace kestrel::cuda
