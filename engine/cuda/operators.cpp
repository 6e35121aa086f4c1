#include "engine/cuda/operators.hpp"

#include <string>

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
                       .tiled = false};
    const bool serves = gdn_delta_reg_serves(step);
    if (call.variant == "reg" && !serves) {
        fail(KESTREL_UNSUPPORTED, "gdn_delta: k_gdn_delta_reg takes 128 x 128, 64 x 64 and 32 x 32 states, not " + std::to_string(call.kd) +
                                      " x " + std::to_string(call.vd) + "; use variant ref");
    }
    if (!call.variant.empty() && call.variant != "reg" && call.variant != "ref") {
        fail(KESTREL_UNSUPPORTED, "gdn_delta has no variant \"" + std::string(call.variant) + "\"; it has reg (default) and ref");
    }
    const Stream stream = make_stream();
    check(cudaDeviceSynchronize(), "sending an operator's input");
    if (call.variant == "ref" || !serves) {
        launch_gdn_delta(step, stream.get());
    } else {
        launch_gdn_delta_reg(step, stream.get());
    }
    check(cudaStreamSynchronize(stream.get()), "gdn_delta");
    fetch(state, call.state);
    fetch(out, call.out);
}

void run_f32_gemv_pair(const GemvPairCall& call) {
    const Buffer<float> a = sent(call.a, call.rows * call.cols);
    const Buffer<float> b = sent(call.b, call.rows * call.cols);
    const Buffer<float> x = sent(call.x, call.cols);
    const Buffer<float> ya = unwritten(call.rows);
    const Buffer<float> yb = unwritten(call.rows);
    const Stream stream = make_stream();
    check(cudaDeviceSynchronize(), "sending an operator's input");
    launch_f32_gemv_pair(a.get(), b.get(), x.get(), call.rows, call.cols, ya.get(), yb.get(), stream.get());
    check(cudaStreamSynchronize(stream.get()), "f32_gemv2");
    fetch(ya, call.ya);
    fetch(yb, call.yb);
}

constexpr BackendOperators operators{.gdn_delta = run_gdn_delta, .f32_gemv_pair = run_f32_gemv_pair};

}  // namespace

const BackendOperators& device_operators() {
    return operators;
}

}  // namespace kestrel::cuda
