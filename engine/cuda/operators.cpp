#include "engine/cuda/operators.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/cuda/arrangement.hpp"
#include "engine/cuda/handles.hpp"
#include "engine/cuda/launch.hpp"
#include "engine/error.hpp"

namespace kestrel::cuda {
namespace {

Buffer<float> sent(const float* from, std::size_t count) {
    Buffer<float> buffer = make_buffer<float>(count);
    check(cudaMemcpy(buffer.get(), from, buffer.bytes(), cudaMemcpyHostToDevice), "sending an operator's input");
    return buffer;
}

void fetch(const Buffer<float>& buffer, float* to) {
    check(cudaMemcpy(to, buffer.get(), buffer.bytes(), cudaMemcpyDeviceToHost), "fetching an operator's output");
}

// Every byte set, so that an element which no thread writes shows as not-a-number.
Buffer<float> unwritten(std::size_t count) {
    Buffer<float> buffer = make_buffer<float>(count);
    check(cudaMemset(buffer.get(), 0xFF, buffer.bytes()), "preparing an operator's output");
    return buffer;
}

unsigned fitting(std::size_t value) {
    require(value <= 0x7FFFFFFF, "an operator's extents are below 2^31");
    return static_cast<unsigned>(value);
}

// Launches in a stream of its own, once the inputs are there, and waits for the results.
template <class Launch>
void run(const Launch& launch) {
    const Stream stream = make_stream();
    check(cudaDeviceSynchronize(), "sending an operator's input");
    launch(stream.get());
    check(cudaStreamSynchronize(stream.get()), "running an operator");
}

void run_gdn_delta(const GdnDeltaCall& call) {
    const Buffer<float> state = sent(call.state, call.heads * call.kd * call.vd);
    const Buffer<float> q = sent(call.q, call.k_heads * call.kd);
    const Buffer<float> k = sent(call.k, call.k_heads * call.kd);
    const Buffer<float> v = sent(call.v, call.heads * call.vd);
    const Buffer<float> g = sent(call.g, call.heads);
    const Buffer<float> beta = sent(call.beta, call.heads);
    const Buffer<float> out = unwritten(call.heads * call.vd);
    const GdnStep step{.state = state.get(),
                       .q = q.get(),
                       .k = k.get(),
                       .v = v.get(),
                       .g = g.get(),
                       .beta = beta.get(),
                       .out = out.get(),
                       .heads = fitting(call.heads),
                       .k_heads = fitting(call.k_heads),
                       .kd = fitting(call.kd),
                       .vd = fitting(call.vd),
                       .tiled = call.order == HeadOrder::tiled};
    const bool serves = gdn_delta_reg_serves(step);
    if (call.variant == "reg" && !serves) {
        fail(KESTREL_UNSUPPORTED, "gdn_delta: k_gdn_delta_reg takes 128 x 128, 64 x 64 and 32 x 32 states, not " + std::to_string(call.kd) +
                                      " x " + std::to_string(call.vd) + "; use variant ref");
    }
    if (!call.variant.empty() && call.variant != "reg" && call.variant != "ref") {
        fail(KESTREL_UNSUPPORTED,
             "gdn_delta has no variant \"" + std::string(call.variant) + "\"; it has reg (default), ref, reg-tiled and ref-tiled");
    }
    run([&](cudaStream_t stream) {
        if (call.variant == "ref" || !serves) {
            launch_gdn_delta(step, stream);
        } else {
            launch_gdn_delta_reg(step, stream);
        }
    });
    fetch(state, call.state);
    fetch(out, call.out);
}

void run_f32_gemv_pair(const GemvPairCall& call) {
    const Buffer<float> a = sent(call.a, call.rows * call.cols);
    const Buffer<float> b = sent(call.b, call.rows * call.cols);
    const Buffer<float> x = sent(call.x, call.cols);
    const Buffer<float> ya = unwritten(call.rows);
    const Buffer<float> yb = unwritten(call.rows);
    run([&](cudaStream_t stream) { launch_f32_gemv_pair(a.get(), b.get(), x.get(), call.rows, call.cols, ya.get(), yb.get(), stream); });
    fetch(ya, call.ya);
    fetch(yb, call.yb);
}

void run_q_gemv(const QuantisedGemvCall& call) {
    const std::uint64_t bytes = bytes_of(info_of(call.a.type), call.rows * call.cols);
    const Buffer<std::byte> a = make_buffer<std::byte>(bytes);
    put_tensor(call.a.type, bytes, call.a.data, a.get());
    const Buffer<float> x = sent(call.x, call.cols);
    const Buffer<float> y = unwritten(call.rows);
    run([&](cudaStream_t stream) { launch_gemv({a.get(), call.a.type, call.rows, call.cols}, x.get(), y.get(), Store::replace, stream); });
    fetch(y, call.y);
}

// [positions][heads][dim] to [heads][positions][dim].
std::vector<float> by_head(const float* from, const AttentionCall& call) {
    std::vector<float> to(call.positions * call.kv_heads * call.dim);
    for (std::size_t p = 0; p < call.positions; ++p) {
        for (std::size_t h = 0; h < call.kv_heads; ++h) {
            std::copy_n(from + (p * call.kv_heads + h) * call.dim, call.dim, to.data() + (h * call.positions + p) * call.dim);
        }
    }
    return to;
}

void run_attention(const AttentionCall& call) {
    const std::size_t width = call.heads * call.dim;
    std::vector<float> gates(2 * width);  // [heads][2][dim]; the first halves are not read
    for (std::size_t h = 0; h < call.heads; ++h) {
        std::copy_n(call.gate + h * call.dim, call.dim, gates.data() + (2 * h + 1) * call.dim);
    }
    const Buffer<float> q_and_gate = sent(gates.data(), gates.size());
    const Buffer<float> q = sent(call.q, width);
    const std::vector<float> by_head_keys = by_head(call.keys, call);
    const std::vector<float> by_head_values = by_head(call.values, call);
    const Buffer<float> keys = sent(by_head_keys.data(), by_head_keys.size());
    const Buffer<float> values = sent(by_head_values.data(), by_head_values.size());
    const Buffer<float> scores = unwritten(attention_scratch_floats(call.heads, call.dim, call.positions));
    const Buffer<float> out = unwritten(width);
    const Control host{.token = 0, .position = static_cast<std::int32_t>(fitting(call.positions) - 1), .next = 0, .unused = 0};
    const Buffer<Control> control = make_buffer<Control>(1);
    check(cudaMemcpy(control.get(), &host, sizeof host, cudaMemcpyHostToDevice), "sending an operator's input");
    AttentionHeads heads{};
    heads.q_and_gate = q_and_gate.get();
    heads.q = q.get();
    heads.keys = keys.get();
    heads.values = values.get();
    heads.scores = scores.get();
    heads.out = out.get();
    heads.heads = fitting(call.heads);
    heads.kv_heads = fitting(call.kv_heads);
    heads.dim = fitting(call.dim);
    heads.capacity = fitting(call.positions);
    run([&](cudaStream_t stream) { launch_attend(heads, control.get(), stream); });
    fetch(out, call.out);
}

void run_rms_norm(const RmsNormCall& call) {
    const Buffer<float> x = sent(call.x, call.n);
    const Buffer<float> w = sent(call.w, call.n);
    const Buffer<float> y = unwritten(call.n);
    run([&](cudaStream_t stream) { launch_rms_norm(x.get(), w.get(), call.n, call.eps, y.get(), stream); });
    fetch(y, call.y);
}

void run_conv_silu(const ConvSiluCall& call) {
    const Buffer<float> state = sent(call.state, (call.taps - 1) * call.channels);
    const Buffer<float> w = sent(call.w, call.taps * call.channels);
    const Buffer<float> x = sent(call.x, call.channels);
    run([&](cudaStream_t stream) { launch_conv_silu(state.get(), w.get(), x.get(), call.channels, call.taps, stream); });
    fetch(state, call.state);
    fetch(x, call.y);
}

}  // namespace

const BackendOperators device_operators{.gdn_delta = run_gdn_delta,
                                        .f32_gemv_pair = run_f32_gemv_pair,
                                        .q_gemv = run_q_gemv,
                                        .attention = run_attention,
                                        .rms_norm = run_rms_norm,
                                        .conv_silu = run_conv_silu};

}  // namespace kestrel::cuda
