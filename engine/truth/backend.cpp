// The truth engine behind the seam: the same steps as operators and as a decoder. Operators have no variants.
#include "engine/backend.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/error.hpp"
#include "engine/truth/decoder.hpp"
#include "engine/truth/steps.hpp"

namespace kestrel::truth {
namespace {

constexpr SwitchDescription switches[] = {
    {"KESTREL_TRUTH_ROUND", rounding_values,
     "none computes in double throughout; f32 rounds every step's result, to show what rounding does to a model"},
};

Vector wide(const float* values, std::size_t count) {
    return {values, values + count};
}

void narrow(In from, float* to) {
    std::transform(from.begin(), from.end(), to, [](double value) { return static_cast<float>(value); });
}

void need_no_variant(std::string_view name, std::string_view variant) {
    if (variant.empty()) return;
    fail(KESTREL_UNSUPPORTED, std::string(name) + " has no variant \"" + std::string(variant) + "\": the truth has one way of doing it");
}

void run_gdn_delta(const GdnDeltaCall& call) {
    need_no_variant("gdn_delta", call.variant);
    if (call.heads % call.k_heads != 0) {
        bad_argument("gdn_delta: " + std::to_string(call.k_heads) + " key heads do not divide " + std::to_string(call.heads) +
                     " value heads");
    }
    const std::size_t state_size = call.kd * call.vd;
    for (std::size_t h = 0; h < call.heads; ++h) {
        const std::size_t kh = key_head(h, call.heads, call.k_heads, call.order);
        Vector state = wide(call.state + h * state_size, state_size);
        narrow(gdn_delta(state, wide(call.q + kh * call.kd, call.kd), wide(call.k + kh * call.kd, call.kd),
                         wide(call.v + h * call.vd, call.vd), std::exp(static_cast<double>(call.g[h])), call.beta[h]),
               call.out + h * call.vd);
        narrow(state, call.state + h * state_size);
    }
}

StoredTensor f32_matrix(const float* values) {
    return {reinterpret_cast<const std::byte*>(values), TensorType::f32};
}

void run_f32_gemv_pair(const GemvPairCall& call) {
    const Vector x = wide(call.x, call.cols);
    narrow(multiply(f32_matrix(call.a), call.rows, x), call.ya);
    narrow(multiply(f32_matrix(call.b), call.rows, x), call.yb);
}

void run_q_gemv(const QuantisedGemvCall& call) {
    narrow(multiply(call.a, call.rows, wide(call.x, call.cols)), call.y);
}

void run_attention(const AttentionCall& call) {
    const std::size_t width = call.heads * call.dim;
    const std::size_t cached = call.positions * call.kv_heads * call.dim;
    narrow(attention(wide(call.q, width), wide(call.gate, width), wide(call.keys, cached), wide(call.values, cached), call.heads,
                     call.kv_heads, call.dim),
           call.out);
}

void run_rms_norm(const RmsNormCall& call) {
    narrow(rms_norm(wide(call.x, call.n), wide(call.w, call.n), call.eps), call.y);
}

void run_conv_silu(const ConvSiluCall& call) {
    const std::size_t kept = (call.taps - 1) * call.channels;
    Vector state = wide(call.state, kept);
    narrow(conv_silu(state, wide(call.w, call.taps * call.channels), wide(call.x, call.channels)), call.y);
    narrow(state, call.state);
}

constexpr BackendOperators operators{.gdn_delta = run_gdn_delta,
                                     .f32_gemv_pair = run_f32_gemv_pair,
                                     .q_gemv = run_q_gemv,
                                     .attention = run_attention,
                                     .rms_norm = run_rms_norm,
                                     .conv_silu = run_conv_silu};

std::uint64_t workspace_bytes(const ModelDims& dims, std::uint32_t max_positions) {
    return SequenceLayout(dims, max_positions).bytes();
}

std::unique_ptr<Backend> open(const Opening& opening) {
    return std::make_unique<Decoder>(opening);
}

constexpr BackendLibrary library{.name = "kestrel_truth",
                                 .switches = switches,
                                 .memory_kind = KESTREL_MEMORY_HOST,
                                 .alignment = memory_alignment,
                                 .allocate = MemoryBlock::allocate,
                                 .arrangement = nullptr,
                                 .workspace_bytes = workspace_bytes,
                                 .state_element_bytes = sizeof(double),
                                 .open = open,
                                 .operators = &operators,
                                 .capability = nullptr};

}  // namespace
}  // namespace kestrel::truth

const kestrel::BackendLibrary& kestrel::backend_library() {
    return truth::library;
}
