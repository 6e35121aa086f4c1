#include "engine/weights.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "engine/digest.hpp"

namespace kestrel {
namespace {

constexpr std::uint64_t floats_per_line = 16;

// conv1d.weight is [channels, 1, taps]; the kernel walks over channels, so the block holds [taps][channels].
template <class Body>
void for_each_conv(const TensorSpec& tensor, const Body& body) {
    const std::uint64_t channels = tensor.shape[0];
    const std::uint64_t taps = tensor.shape[2];
    for (std::uint64_t c = 0; c < channels; ++c) {
        for (std::uint64_t t = 0; t < taps; ++t) body(c * taps + t, t * channels + c);
    }
}

}  // namespace

std::uint64_t TensorSpec::elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

void WeightLayout::add(Role role, std::uint32_t layer, std::string name, std::vector<std::uint64_t> shape) {
    TensorSpec tensor{role, layer, std::move(name), std::move(shape), floats_};
    floats_ += (tensor.elements() + floats_per_line - 1) / floats_per_line * floats_per_line;
    tensors_.push_back(std::move(tensor));
}

// Cannot overflow: validate() bounds each dimension by 2^20 and the layers by 2^12.
WeightLayout::WeightLayout(const ModelDims& d) {
    add(Role::embed, 0, "model.embed_tokens.weight", {d.vocab, d.hidden});
    for (std::uint32_t i = 0; i < d.layers(); ++i) {
        const std::string layer = "model.layers." + std::to_string(i) + ".";
        add(Role::input_norm, i, layer + "input_layernorm.weight", {d.hidden});
        if (d.full_attention[i]) {
            const std::uint64_t q_rows = std::uint64_t{2} * d.heads * d.head_dim;
            const std::uint64_t kv_rows = std::uint64_t{d.kv_heads} * d.head_dim;
            add(Role::q, i, layer + "self_attn.q_proj.weight", {q_rows, d.hidden});
            add(Role::k, i, layer + "self_attn.k_proj.weight", {kv_rows, d.hidden});
            add(Role::v, i, layer + "self_attn.v_proj.weight", {kv_rows, d.hidden});
            add(Role::attention_out, i, layer + "self_attn.o_proj.weight", {d.hidden, q_rows / 2});
            add(Role::q_norm, i, layer + "self_attn.q_norm.weight", {d.head_dim});
            add(Role::k_norm, i, layer + "self_attn.k_norm.weight", {d.head_dim});
        } else {
            add(Role::qkv, i, layer + "linear_attn.in_proj_qkv.weight", {d.conv_channels(), d.hidden});
            add(Role::z, i, layer + "linear_attn.in_proj_z.weight", {d.value_width(), d.hidden});
            add(Role::beta, i, layer + "linear_attn.in_proj_b.weight", {d.v_heads, d.hidden});
            add(Role::alpha, i, layer + "linear_attn.in_proj_a.weight", {d.v_heads, d.hidden});
            add(Role::conv, i, layer + "linear_attn.conv1d.weight", {d.conv_channels(), 1, d.conv_taps});
            add(Role::a_log, i, layer + "linear_attn.A_log", {d.v_heads});
            add(Role::dt_bias, i, layer + "linear_attn.dt_bias", {d.v_heads});
            add(Role::gated_norm, i, layer + "linear_attn.norm.weight", {d.v_dim});
            add(Role::gdn_out, i, layer + "linear_attn.out_proj.weight", {d.hidden, d.value_width()});
        }
        add(Role::post_norm, i, layer + "post_attention_layernorm.weight", {d.hidden});
        add(Role::gate, i, layer + "mlp.gate_proj.weight", {d.intermediate, d.hidden});
        add(Role::up, i, layer + "mlp.up_proj.weight", {d.intermediate, d.hidden});
        add(Role::down, i, layer + "mlp.down_proj.weight", {d.hidden, d.intermediate});
    }
    add(Role::final_norm, 0, "model.norm.weight", {d.hidden});
    if (!d.tied_head) add(Role::head, 0, "lm_head.weight", {d.vocab, d.hidden});
}

std::uint64_t WeightLayout::parameters() const {
    std::uint64_t total = 0;
    for (const TensorSpec& tensor : tensors_) total += tensor.elements();
    return total;
}

std::uint64_t WeightLayout::shape_hash() const {
    TensorDigest shapes;
    for (const TensorSpec& tensor : tensors_) shapes.add(tensor.name, tensor.shape, {});
    return shapes.words()[0];
}

std::string WeightLayout::id() const {
    std::string id = "cpu-f32-v1-";
    const std::uint64_t hash = shape_hash();
    for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[(hash >> shift) & 15U];
    return id;
}

Weights::Weights(const ModelDims& dims, const WeightLayout& layout, const float* block)
    : layers_(dims.layers(), std::array<const float*, role_count>{}) {
    for (const TensorSpec& tensor : layout.tensors()) {
        layers_[tensor.layer][static_cast<std::size_t>(tensor.role)] = block + tensor.offset;
    }
    auto& outer = layers_[0];
    if (dims.tied_head) outer[static_cast<std::size_t>(Role::head)] = outer[static_cast<std::size_t>(Role::embed)];
}

void to_block(const TensorSpec& tensor, std::span<const float> canonical, float* block) {
    float* out = block + tensor.offset;
    if (tensor.role == Role::conv) {
        for_each_conv(tensor, [&](std::uint64_t from, std::uint64_t to) { out[to] = canonical[from]; });
    } else {
        std::copy(canonical.begin(), canonical.end(), out);
    }
}

void from_block(const TensorSpec& tensor, const float* block, std::span<float> canonical) {
    const float* from = block + tensor.offset;
    if (tensor.role == Role::conv) {
        for_each_conv(tensor, [&](std::uint64_t to, std::uint64_t at) { canonical[to] = from[at]; });
    } else {
        std::copy(from, from + canonical.size(), canonical.begin());
    }
}

std::string digest_of(const WeightLayout& layout, const float* block) {
    TensorDigest digest;
    std::vector<float> canonical;
    for (const TensorSpec& tensor : layout.tensors()) {
        if (tensor.role == Role::conv) {
            canonical.resize(tensor.elements());
            from_block(tensor, block, canonical);
            digest.add(tensor.name, tensor.shape, canonical);
        } else {
            digest.add(tensor.name, tensor.shape, {block + tensor.offset, tensor.elements()});
        }
    }
    return digest.hex();
}

}  // namespace kestrel
