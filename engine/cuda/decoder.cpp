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

// Kernels that begin while another ends came with sm_90.
bool can_overlap() {
    int device = 0;
    int major = 0;
    check(cudaGetDevice(&device), "asking for the device");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking what the device can do");
    return major >= 9;
}

}  // namespace

Decoder::Decoder(const Opening& o, GdnVariant gdn, LaunchMode launch, Overlap overlap, Fusion fusion)
    : dims_(o.dims),
      gdn_(gdn),
      launch_(launch),
      overlap_(can_overlap() ? overlap : Overlap::off),
      fusion_(fusion),
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

Product Decoder::product(std::uint32_t layer, Role role, std::uint64_t rows, std::uint64_t cols, std::size_t y) const {
    return {matrix(layer, role, rows, cols), piece(y)};
}

Activations Decoder::activations(const float* values, std::size_t n) const {
    return {values, parts_of(n)};
}

// Only addresses that stay the same until closing: a captured token is replayed for every position.
void Decoder::enqueue_token() {
    const cudaStream_t stream = stream_.get();
    const Queue queue = this->queue();
    check(cudaMemcpyAsync(control_.get(), host_control_.get(), sizeof(Control), cudaMemcpyHostToDevice, stream), "sending the token");
    const std::size_t pairs = dims_.rotary_dim / 2;
    const auto eps = static_cast<float>(dims_.rms_eps);
    // After a copy, which nothing overlaps with.
    launch_rotation(control_.get(), inverse_frequency_.get(), pairs, rotation_.get(), rotation_.get() + pairs, stream);
    float* hidden = piece(layout_.hidden);
    const std::size_t n = dims_.hidden;
    launch_embed(matrix(0, Role::embed, dims_.vocab, n), control_.get(), hidden, queue);
    for (std::uint32_t layer = 0; layer < dims_.layers(); ++layer) {
        launch_rms_norm(hidden, vector(layer, Role::input_norm), n, eps, piece(layout_.normed), parts_of(n), queue);
        if (dims_.full_attention[layer]) {
            attention_layer(layer);
        } else {
            gdn_layer(layer);
        }
        launch_rms_norm(hidden, vector(layer, Role::post_norm), n, eps, piece(layout_.normed), parts_of(n), queue);
        mlp(layer);
    }
    launch_rms_norm(hidden, vector(0, Role::final_norm), n, eps, piece(layout_.final_norm), parts_of(n), queue);
    launch_gemv(matrix(0, Role::head, dims_.vocab, n), activations(piece(layout_.final_norm), n), piece(layout_.logits), Store::replace,
                queue);
    launch_argmax(piece(layout_.logits), dims_.vocab, argmax_scratch_.get(), control_.get(), queue);
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

GdnInputs Decoder::gdn_inputs(std::uint32_t layer) const {
    return {.conv_state = piece(layout_.conv_state) + number_in_kind_[layer] * layout_.conv_state_stride,
            .conv = vector(layer, Role::conv),
            .mixed = piece(layout_.mixed),
            .beta = piece(layout_.beta),
            .g = piece(layout_.alpha),
            .rate = vector(layer, Role::decay_rate),
            .dt_bias = vector(layer, Role::dt_bias),
            .heads = dims_.v_heads,
            .k_heads = dims_.k_heads,
            .kd = dims_.k_dim,
            .vd = dims_.v_dim,
            .taps = dims_.conv_taps,
            .q_scale = q_scale()};
}

float Decoder::q_scale() const {
    return 1.0F / std::sqrt(static_cast<float>(dims_.k_dim));
}

void Decoder::gdn_layer(std::uint32_t layer) {
    const Queue queue = this->queue();
    const float* x = piece(layout_.normed);
    float* mixed = piece(layout_.mixed);
    const Product projections[] = {product(layer, Role::qkv, dims_.conv_channels(), dims_.hidden, layout_.mixed),
                                   product(layer, Role::z, dims_.value_width(), dims_.hidden, layout_.z)};
    launch_gemvs(projections, activations(x, dims_.hidden), Store::replace, queue);
    launch_f32_gemv_pair(vector(layer, Role::beta), vector(layer, Role::alpha), x, dims_.v_heads, dims_.hidden, piece(layout_.beta),
                         piece(layout_.alpha), queue);
    if (fusion_ == Fusion::on) {
        launch_gdn_inputs(gdn_inputs(layer), queue);
    } else {
        launch_gdn_beta_g(piece(layout_.beta), piece(layout_.alpha), vector(layer, Role::decay_rate), vector(layer, Role::dt_bias),
                          dims_.v_heads, queue);
        launch_conv_silu(piece(layout_.conv_state) + number_in_kind_[layer] * layout_.conv_state_stride, vector(layer, Role::conv), mixed,
                         dims_.conv_channels(), dims_.conv_taps, queue);
        // q and k lie one after the other; only q is scaled.
        launch_l2_norm(mixed, std::size_t{2} * dims_.k_heads, dims_.k_dim, dims_.k_heads, q_scale(), queue);
    }
    if (gdn_ == GdnVariant::reg) {
        launch_gdn_delta_reg(gdn_step(layer), queue);
    } else {
        launch_gdn_delta(gdn_step(layer), queue);
    }
    float* out = piece(layout_.mixer_out);
    const std::size_t width = dims_.value_width();
    launch_gated_rms_norm(out, vector(layer, Role::gated_norm), piece(layout_.z), dims_.v_heads, dims_.v_dim,
                          static_cast<float>(dims_.rms_eps), parts_of(width), queue);
    launch_gemv(matrix(layer, Role::gdn_out, dims_.hidden, width), activations(out, width), piece(layout_.hidden), Store::add, queue);
}

void Decoder::attention_layer(std::uint32_t layer) {
    const Queue queue = this->queue();
    const float* x = piece(layout_.normed);
    const std::uint64_t width = std::uint64_t{dims_.heads} * dims_.head_dim;
    const std::uint64_t kv_width = std::uint64_t{dims_.kv_heads} * dims_.head_dim;
    const std::size_t cache = number_in_kind_[layer] * layout_.cache_stride;
    const Product projections[] = {product(layer, Role::q, 2 * width, dims_.hidden, layout_.q_and_gate),
                                   product(layer, Role::k, kv_width, dims_.hidden, layout_.k),
                                   product(layer, Role::v, kv_width, dims_.hidden, layout_.v)};
    launch_gemvs(projections, activations(x, dims_.hidden), Store::replace, queue);
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
    launch_qkv_norm_rope(heads, control_.get(), queue);
    launch_attend(heads, control_.get(), queue);
    float* out = piece(layout_.mixer_out);
    if (can_split(width)) launch_split(out, width, parts_of(width), queue);
    launch_gemv(matrix(layer, Role::attention_out, dims_.hidden, width), activations(out, width), piece(layout_.hidden), Store::add, queue);
}

void Decoder::mlp(std::uint32_t layer) {
    const Queue queue = this->queue();
    const float* x = piece(layout_.normed);
    float* act = piece(layout_.act);
    const std::size_t n = dims_.intermediate;
    const Product halves[] = {product(layer, Role::gate, n, dims_.hidden, layout_.act),
                              product(layer, Role::up, n, dims_.hidden, layout_.up)};
    const Activations in = activations(x, dims_.hidden);
    Activations out{act, parts_of(n)};
    if (fusion_ == Fusion::on && gate_up_serves(halves[0].m, halves[1].m)) {
        float* parts = piece(layout_.other_parts);
        launch_gate_up(halves[0].m, halves[1].m, in, act, parts, queue);
        out.parts = parts;
    } else {
        launch_gemvs(halves, in, Store::replace, queue);
        launch_silu_mul(act, piece(layout_.up), n, parts_of(n), queue);
    }
    launch_gemv(matrix(layer, Role::down, dims_.hidden, n), out, piece(layout_.hidden), Store::add, queue);
}

}  // namespace kestrel::cuda
