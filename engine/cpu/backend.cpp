#include "engine/cpu/backend.hpp"

// The CPU engine behind the seam.
#include "engine/backend.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/cpu/arrangement.hpp"
#include "engine/cpu/decoder.hpp"
#include "engine/cpu/ops.hpp"
#include "engine/error.hpp"

namespace kestrel::cpu {
namespace {

constexpr const char* gdn_delta_values[] = {"reg", "ref"};
constexpr GdnVariant gdn_delta_variants[] = {GdnVariant::reg, GdnVariant::ref};

constexpr SwitchDescription switches[] = {
    {"VLLM_CUDA_GDN_DELTA", gdn_delta_values,
     "how the recurrent state is updated: reg keeps a tile beside the processor (k_gdn_delta_reg), ref re-reads memory (k_gdn_delta)"},
};

class CpuBackend final : public Backend {
  public:
    explicit CpuBackend(const Opening& o)
        : decoder_(o.dims, o.layout, o.weights, reinterpret_cast<float*>(o.workspace),
                   {.threads = o.threads, .max_positions = o.max_positions, .gdn = gdn_delta_variants[o.switches.at(0)]}) {}

    void reset() override { decoder_.reset(); }
    std::int32_t decode(std::int32_t token) override { return decoder_.decode(token); }
    void read_logits(std::span<float> out) const override { copy(decoder_.logits(), out); }
    void read_hidden(std::span<float> out) const override { copy(decoder_.hidden(), out); }
    void read_final_norm(std::span<float> out) const override { copy(decoder_.final_norm(), out); }
    void read_gdn_state(std::uint32_t layer, std::span<float> out) const override { copy(decoder_.gdn_state(layer), out); }
    [[nodiscard]] std::size_t saved_bytes() const override { return decoder_.saved_bytes(); }
    void save(std::span<std::byte> out) const override { decoder_.save(out); }
    void restore(std::span<const std::byte> in) override { decoder_.restore(in); }
    [[nodiscard]] const char* effective_switch(std::size_t) const override {
        return gdn_delta_values[decoder_.options().gdn == GdnVariant::ref ? 1 : 0];
    }

  private:
    static void copy(std::span<const float> from, std::span<float> to) { std::copy(from.begin(), from.end(), to.begin()); }

    Decoder decoder_;
};

GdnVariant variant_named(std::string_view name) {
    if (name.empty() || name == "reg") return GdnVariant::reg;
    if (name == "ref") return GdnVariant::ref;
    fail(KESTREL_UNSUPPORTED, "gdn_delta has no variant \"" + std::string(name) + "\"; it has reg (default) and ref");
}

void run_gdn_delta(const GdnDeltaCall& call) {
    const GdnVariant variant = variant_named(call.variant);
    std::vector<float> alpha(call.heads);
    for (std::size_t h = 0; h < call.heads; ++h) alpha[h] = static_cast<float>(std::exp(static_cast<double>(call.g[h])));
    ThreadPool pool(1);
    gdn_delta(pool, kernels(), variant,
              {.state = call.state,
               .q = call.q,
               .k = call.k,
               .v = call.v,
               .alpha = alpha.data(),
               .beta = call.beta,
               .out = call.out,
               .heads = call.heads,
               .k_heads = call.k_heads,
               .kd = call.kd,
               .vd = call.vd,
               .order = call.order});
}

void run_f32_gemv_pair(const GemvPairCall& call) {
    ThreadPool pool(1);
    f32_gemv_pair(pool, kernels(), call.a, call.b, call.x, call.rows, call.cols, call.ya, call.yb);
}

void run_q_gemv(const QuantisedGemvCall& call) {
    const std::size_t row_bytes = bytes_of(info_of(call.a.type), call.cols);
    std::vector<std::byte> arranged(call.rows * row_bytes + overrun);
    for (std::size_t r = 0; r < call.rows; ++r) {
        arrange_row(call.a.type, call.cols, call.a.data + r * row_bytes, arranged.data() + r * row_bytes);
    }
    ThreadPool pool(1);
    const Projection one[] = {{{arranged.data(), call.a.type}, call.y, call.rows}};
    project(pool, kernels(), one, call.x, call.cols);
}

// From [positions][kv_heads][dim] to the cache's [kv_heads][positions][dim].
std::vector<float> by_head(const float* rows, const AttentionCall& call) {
    std::vector<float> cache(call.positions * call.kv_heads * call.dim);
    for (std::size_t p = 0; p < call.positions; ++p) {
        for (std::size_t h = 0; h < call.kv_heads; ++h) {
            std::copy_n(rows + (p * call.kv_heads + h) * call.dim, call.dim, cache.data() + (h * call.positions + p) * call.dim);
        }
    }
    return cache;
}

void run_attention(const AttentionCall& call) {
    const std::vector<float> keys = by_head(call.keys, call);
    const std::vector<float> values = by_head(call.values, call);
    std::vector<float> scores(call.heads * call.positions);
    ThreadPool pool(1);
    attend(pool, kernels(),
           {.q = call.q,
            .keys = keys.data(),
            .values = values.data(),
            .scores = scores.data(),
            .out = call.out,
            .heads = call.heads,
            .kv_heads = call.kv_heads,
            .dim = call.dim,
            .positions = call.positions,
            .capacity = call.positions});
    kernels().sigmoid_mul(call.out, call.gate, call.heads * call.dim);
}

void run_rms_norm(const RmsNormCall& call) {
    kernels().rms_norm(call.x, call.w, call.n, call.eps, call.y);
}

void run_conv_silu(const ConvSiluCall& call) {
    kernels().conv_silu(call.state, call.w, call.x, call.channels, call.taps, call.y, 0, call.channels);
}

constexpr BackendOperators operators{.gdn_delta = run_gdn_delta,
                                     .f32_gemv_pair = run_f32_gemv_pair,
                                     .q_gemv = run_q_gemv,
                                     .attention = run_attention,
                                     .rms_norm = run_rms_norm,
                                     .conv_silu = run_conv_silu};

std::uint64_t workspace_bytes(const ModelDims& dims, std::uint32_t max_positions) {
    return WorkspaceLayout(dims, max_positions).bytes;
}

std::unique_ptr<Backend> open(const Opening& opening) {
    return std::make_unique<CpuBackend>(opening);
}

constexpr BackendLibrary description{.name = "kestrel_cpu",
                                     .switches = switches,
                                     .memory_kind = KESTREL_MEMORY_HOST,
                                     .alignment = memory_alignment,
                                     .allocate = MemoryBlock::allocate,
                                     .arrangement = &row_arrangement,
                                     .workspace_bytes = workspace_bytes,
                                     .state_element_bytes = sizeof(float),
                                     .open = open,
                                     .operators = &operators,
                                     .capability = nullptr};

}  // namespace

const BackendLibrary& library() {
    return description;
}

}  // namespace kestrel::cpu
