#include "engine/weights.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>

#include "engine/cpu/thread_pool.hpp"
#include "engine/digest.hpp"
#include "engine/error.hpp"
#include "engine/memory.hpp"
#include "engine/text.hpp"

namespace kestrel {
namespace {

// conv1d.weight is [channels, 1, taps]; the kernel walks over channels, so the block holds [taps][channels].
template <class Body>
void for_each_conv(const TensorSpec& tensor, const Body& body) {
    const std::uint64_t channels = tensor.shape[0];
    const std::uint64_t taps = tensor.shape[2];
    for (std::uint64_t c = 0; c < channels; ++c) {
        for (std::uint64_t t = 0; t < taps; ++t) body(c * taps + t, t * channels + c);
    }
}

// Values that a digest makes at a time: whole blocks of every type, and little enough to stay in the cache until they are hashed.
constexpr std::uint64_t piece_elements = 16384;

// What a thread works with beside the block.
struct Scratch {
    std::vector<float> values = std::vector<float>(piece_elements);
    std::vector<std::byte> stored = std::vector<std::byte>(piece_elements * sizeof(float));  // no type takes more
};

// The tensor's canonical values from `first` on, which is where a block of its type begins.
void canonical_values(const TensorSpec& tensor, const std::byte* block, ReadStored read, std::uint64_t first, std::span<float> out,
                      std::span<std::byte> scratch) {
    if (tensor.role != Role::conv && read != nullptr) {
        read(tensor, block, first, out.size(), scratch.data());
        return dequantise(tensor.type, scratch.data(), out);
    }
    const std::byte* stored = block + tensor.offset;
    if (tensor.role != Role::conv) return dequantise(tensor.type, stored + bytes_of(info_of(tensor.type), first), out);
    const auto* held = reinterpret_cast<const float*>(stored);
    const std::uint64_t channels = tensor.shape[0];
    const std::uint64_t taps = tensor.shape[2];
    for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = held[(first + i) % taps * channels + (first + i) / taps];
}

HashWords chunk_hash(const TensorSpec& tensor, const std::byte* block, ReadStored read, std::uint64_t first, std::uint64_t elements,
                     Scratch& scratch) {
    BlockHash hash;
    hash.begin_bytes(elements * sizeof(float));
    for (std::uint64_t done = 0; done < elements; done += piece_elements) {
        const std::span<float> values = std::span(scratch.values).first(std::min<std::uint64_t>(piece_elements, elements - done));
        canonical_values(tensor, block, read, first + done, values, scratch.stored);
        hash.add_piece(std::as_bytes(values));
    }
    return hash.words();
}

}  // namespace

bool is_matrix(Role role) noexcept {
    switch (role) {
        case Role::embed:
        case Role::head:
        case Role::gate:
        case Role::up:
        case Role::down:
        case Role::qkv:
        case Role::z:
        case Role::gdn_out:
        case Role::q:
        case Role::k:
        case Role::v:
        case Role::attention_out:
            return true;
        default:
            return false;
    }
}

std::uint64_t TensorSpec::elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

std::vector<TensorSpec> tensors_of(const ModelDims& d) {
    std::vector<TensorSpec> tensors;
    const auto add = [&](Role role, std::uint32_t layer, std::string name, std::vector<std::uint64_t> shape) {
        tensors.push_back({role, layer, std::move(name), std::move(shape)});
    };
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
            add(Role::decay_rate, i, layer + "linear_attn.A_log", {d.v_heads});
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
    return tensors;
}

// Cannot overflow: validate() bounds each dimension by 2^20 and the layers by 2^12.
WeightLayout::WeightLayout(const ModelDims& dims, const TypeChoice& type_of) : tensors_(tensors_of(dims)), head_order_(dims.head_order) {
    for (TensorSpec& tensor : tensors_) {
        if (is_matrix(tensor.role)) tensor.type = type_of(tensor);
        const TensorTypeInfo& info = info_of(tensor.type);
        if (tensor.shape.back() % info.block_elements != 0) {
            bad_model("tensor " + in_quotes(tensor.name) + ": rows of " + std::to_string(tensor.shape.back()) + " elements are not whole " +
                      std::string(info.name) + " blocks of " + std::to_string(info.block_elements) + "; use another type");
        }
        tensor.offset = bytes_;
        bytes_ += (tensor.bytes() + memory_alignment - 1) / memory_alignment * memory_alignment;
    }
}

std::uint64_t WeightLayout::parameters() const {
    std::uint64_t total = 0;
    for (const TensorSpec& tensor : tensors_) total += tensor.elements();
    return total;
}

std::uint64_t WeightLayout::shape_hash() const {
    BlockHash shapes;
    const auto add = [&](std::string_view name, std::span<const std::uint64_t> shape) {
        shapes.add_text(name);
        shapes.add_numbers(shape);
        shapes.add_block({});
    };
    for (const TensorSpec& tensor : tensors_) add(tensor.name, tensor.shape);
    const std::uint64_t order[] = {static_cast<std::uint64_t>(head_order_)};
    add("head order", order);
    return shapes.words()[0];
}

std::string WeightLayout::id() const {
    BlockHash types;
    for (const TensorSpec& tensor : tensors_) {
        types.add_text(info_of(tensor.type).name);
        types.add_numbers({});
        types.add_block({});
    }
    std::string id = "cpu-v2-";
    for (const std::uint64_t hash : {shape_hash(), types.words()[0]}) {
        for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[(hash >> shift) & 15U];
    }
    return id;
}

Weights::Weights(const ModelDims& dims, const WeightLayout& layout, const std::byte* block) : layers_(dims.layers()) {
    for (const TensorSpec& tensor : layout.tensors()) {
        layers_[tensor.layer][static_cast<std::size_t>(tensor.role)] = {block + tensor.offset, tensor.type};
    }
    auto& outer = layers_[0];
    if (dims.tied_head) outer[static_cast<std::size_t>(Role::head)] = outer[static_cast<std::size_t>(Role::embed)];
}

void to_block(const TensorSpec& tensor, std::span<const float> canonical, std::byte* block) {
    auto* out = reinterpret_cast<float*>(block + tensor.offset);
    if (tensor.role == Role::conv) {
        for_each_conv(tensor, [&](std::uint64_t from, std::uint64_t to) { out[to] = canonical[from]; });
    } else {
        std::copy(canonical.begin(), canonical.end(), out);
    }
}

std::string digest_of(const WeightLayout& layout, const std::byte* block, std::uint32_t threads, ReadStored read) {
    struct Chunk {
        const TensorSpec* tensor;
        std::uint64_t first;
        std::uint64_t elements;
    };
    std::vector<Chunk> chunks;
    for (const TensorSpec& tensor : layout.tensors()) {
        for (std::uint64_t first = 0; first < tensor.elements(); first += chunk_elements) {
            chunks.push_back({&tensor, first, std::min(chunk_elements, tensor.elements() - first)});
        }
    }
    std::vector<HashWords> hashes(chunks.size());
    // Chunks differ in cost and threads in speed, so each thread takes the next one when it is done with the last.
    std::atomic<std::size_t> next{0};
    cpu::ThreadPool pool(static_cast<std::uint32_t>(std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(chunks.size(), 1))));
    std::vector<Scratch> scratch(pool.threads());
    pool.run([&](std::size_t part, std::size_t) {
        for (std::size_t i = next.fetch_add(1); i < chunks.size(); i = next.fetch_add(1)) {
            hashes[i] = chunk_hash(*chunks[i].tensor, block, read, chunks[i].first, chunks[i].elements, scratch[part]);
        }
    });

    std::vector<HashWords> tensors;
    std::size_t at = 0;
    for (const TensorSpec& tensor : layout.tensors()) {
        const std::size_t count = chunks_of(tensor.elements());
        tensors.push_back(tensor_hash(tensor.name, tensor.shape, tensor.elements(), std::span(hashes).subspan(at, count)));
        at += count;
    }
    return digest_of_tensors(tensors);
}

}  // namespace kestrel
