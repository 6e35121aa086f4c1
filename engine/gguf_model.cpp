// Models as GGUF files of architecture qwen35: its keys, names and conventions. (Sources: conversion/qwen.py and src/models/qwen35.cpp of
// ggml-org/llama.cpp, 2026-08.)
#include <algorithm>

#include "engine/error.hpp"
#include "engine/file_model.hpp"
#include "engine/gguf.hpp"
#include "engine/gguf_model.hpp"
#include "engine/text.hpp"

namespace kestrel {
namespace {

constexpr std::string_view architecture = "qwen35";
constexpr std::uint32_t usual_interval = 4;
constexpr std::uint32_t most_blocks = 8192;

// The keys of the architecture, with the header's checks.
class Keys {
  public:
    explicit Keys(const GgufHeader& header) : header_(header) {}

    [[nodiscard]] static std::string full(const std::string& key) { return std::string(architecture) + "." + key; }

    [[noreturn]] void wrong(const std::string& key, const std::string& what) const {
        bad_model(header_.file() + ": key " + in_quotes(full(key)) + ": " + what);
    }
    template <class T>
    T need(const std::string& key, std::optional<T> value) const {
        if (!value) wrong(key, "is missing");
        return *value;
    }
    [[nodiscard]] std::uint32_t count(const std::string& key) const { return need(key, header_.count(full(key))); }
    [[nodiscard]] std::uint32_t count_or(const std::string& key, std::uint32_t otherwise) const {
        return header_.count(full(key)).value_or(otherwise);
    }
    [[nodiscard]] double number(const std::string& key) const { return need(key, header_.number(full(key))); }

    // One number, or one per block of which those that `counts` says must agree.
    [[nodiscard]] std::uint32_t per_layer(const std::string& key, std::uint32_t blocks, const std::vector<bool>& counts) const {
        const auto all = need(key, header_.counts(full(key)));
        if (all.size() == 1) return all.front();
        if (all.size() != blocks) {
            wrong(key, "expected one number or one for each of " + std::to_string(blocks) + " blocks, found " + std::to_string(all.size()));
        }
        std::optional<std::uint32_t> common;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            if (!counts[i]) continue;
            if (common && *common != all[i]) {
                wrong(key, "expected equal numbers, found " + std::to_string(*common) + " and " + std::to_string(all[i]));
            }
            common = all[i];
        }
        // No layer of the kind: any number does.
        return common.value_or(std::max(1U, *std::max_element(all.begin(), all.end())));
    }

  private:
    const GgufHeader& header_;
};

// The list of layers, where there is one, outranks the interval.
std::vector<bool> layer_kinds(const GgufHeader& header, const Keys& keys, std::uint32_t blocks, std::uint32_t layers) {
    const auto recurrent = header.flags(Keys::full("attention.recurrent_layers"));
    if (recurrent) {
        if (recurrent->size() != blocks) {
            keys.wrong("attention.recurrent_layers",
                       "expected one for each of " + std::to_string(blocks) + " blocks, found " + std::to_string(recurrent->size()));
        }
        std::vector<bool> kinds(recurrent->begin(), recurrent->begin() + layers);
        kinds.flip();
        return kinds;
    }
    const std::uint32_t interval = keys.count_or("full_attention_interval", usual_interval);
    if (interval == 0) keys.wrong("full_attention_interval", "expected 1 or more, found 0");
    return layers_by_interval(layers, interval);
}

std::uint32_t vocabulary(const GgufHeader& header, const Keys& keys) {
    const auto embed = header.tensors().find("token_embd.weight");
    if (embed == header.tensors().end()) bad_model(header.file() + ": tensor \"token_embd.weight\" is missing");
    const std::uint64_t rows = embed->second.shape.front();
    if (rows > (std::uint64_t{1} << 31U)) bad_model(embed->second.where + ": shape " + text_of(embed->second.shape) + " is absurdly large");
    const std::uint32_t stated = keys.count_or("vocab_size", static_cast<std::uint32_t>(rows));
    if (stated != rows)
        keys.wrong("vocab_size", "is " + std::to_string(stated) + ", but token_embd.weight has " + std::to_string(rows) + " rows");
    return stated;
}

void check_supported(const GgufHeader& header) {
    const std::string found = header.text("general.architecture").value_or("nothing");
    if (found != architecture) {
        fail(KESTREL_UNSUPPORTED, header.file() + ": key \"general.architecture\": this engine runs \"" + std::string(architecture) +
                                      "\" only, found " + in_quotes(found));
    }
    const std::string scaling = header.text(Keys::full("rope.scaling.type")).value_or("none");
    if (scaling != "none") {
        fail(KESTREL_UNSUPPORTED,
             header.file() + ": key \"qwen35.rope.scaling.type\": this engine runs \"none\" only, found " + in_quotes(scaling));
    }
}

// Suffix of a tensor's name in its block; outside blocks, the whole name.
std::string_view name_of(Role role) {
    switch (role) {
        case Role::embed:
            return "token_embd.weight";
        case Role::final_norm:
            return "output_norm.weight";
        case Role::head:
            return "output.weight";
        case Role::input_norm:
            return "attn_norm.weight";
        case Role::post_norm:
            return "post_attention_norm.weight";
        case Role::gate:
            return "ffn_gate.weight";
        case Role::up:
            return "ffn_up.weight";
        case Role::down:
            return "ffn_down.weight";
        case Role::qkv:
            return "attn_qkv.weight";
        case Role::z:
            return "attn_gate.weight";
        case Role::beta:
            return "ssm_beta.weight";
        case Role::alpha:
            return "ssm_alpha.weight";
        case Role::conv:
            return "ssm_conv1d.weight";
        case Role::decay_rate:
            return "ssm_a";
        case Role::dt_bias:
            return "ssm_dt.bias";
        case Role::gated_norm:
            return "ssm_norm.weight";
        case Role::gdn_out:
            return "ssm_out.weight";
        case Role::q:
            return "attn_q.weight";
        case Role::k:
            return "attn_k.weight";
        case Role::v:
            return "attn_v.weight";
        case Role::attention_out:
            return "attn_output.weight";
        case Role::q_norm:
            return "attn_q_norm.weight";
        case Role::k_norm:
            return "attn_k_norm.weight";
    }
    return {};
}

std::vector<std::string> spellings(const TensorSpec& tensor) {
    const bool outside = tensor.role == Role::embed || tensor.role == Role::final_norm || tensor.role == Role::head;
    const std::string block = outside ? "" : "blk." + std::to_string(tensor.layer) + ".";
    return {block + std::string(name_of(tensor.role))};
}

// Blocks after the layers predict further tokens; some files bundle them and a vision tower under other names.
bool ignorable(std::string_view name, std::uint32_t layers, std::uint32_t blocks) {
    for (const std::string_view prefix : {"v.", "mm.", "mtp.", "nextn."}) {
        if (name.starts_with(prefix)) return true;
    }
    for (std::uint32_t block = layers; block < blocks; ++block) {
        if (name.starts_with("blk." + std::to_string(block) + ".")) return true;
    }
    return false;
}

}  // namespace

ModelDims gguf_dims(const GgufHeader& header) {
    check_supported(header);
    const Keys keys(header);
    const std::uint32_t blocks = keys.count("block_count");
    const std::uint32_t further = keys.count_or("nextn_predict_layers", 0);
    if (blocks < 1 || blocks > most_blocks) keys.wrong("block_count", "expected 1 to 8192, found " + std::to_string(blocks));
    if (further >= blocks) {
        keys.wrong("nextn_predict_layers",
                   "expected less than block_count (" + std::to_string(blocks) + "), found " + std::to_string(further));
    }
    const std::uint32_t layers = blocks - further;
    ModelDims dims;
    dims.full_attention = layer_kinds(header, keys, blocks, layers);
    dims.vocab = vocabulary(header, keys);
    dims.hidden = keys.count("embedding_length");
    dims.intermediate = keys.per_layer("feed_forward_length", blocks, std::vector<bool>(layers, true));
    dims.heads = keys.per_layer("attention.head_count", blocks, dims.full_attention);
    dims.kv_heads = keys.per_layer("attention.head_count_kv", blocks, dims.full_attention);
    dims.head_dim = keys.count("attention.key_length");
    if (keys.count("attention.value_length") != dims.head_dim) {
        fail(KESTREL_UNSUPPORTED,
             header.file() + ": key \"qwen35.attention.value_length\": this engine runs models where it equals key_length only");
    }
    dims.rotary_dim = keys.count("rope.dimension_count");
    dims.rope_theta = keys.number("rope.freq_base");
    dims.rms_eps = keys.number("attention.layer_norm_rms_epsilon");
    dims.k_heads = keys.count("ssm.group_count");
    dims.v_heads = keys.count("ssm.time_step_rank");
    dims.k_dim = keys.count("ssm.state_size");
    const std::uint32_t inner = keys.count("ssm.inner_size");
    if (dims.v_heads == 0 || inner % dims.v_heads != 0) {
        keys.wrong("ssm.inner_size",
                   std::to_string(inner) + " must be a multiple of ssm.time_step_rank (" + std::to_string(dims.v_heads) + ")");
    }
    dims.v_dim = inner / dims.v_heads;
    dims.conv_taps = keys.count("ssm.conv_kernel");
    dims.tied_head = !header.tensors().contains("output.weight");
    dims.head_order = HeadOrder::tiled;
    validate(dims, header.file());
    return dims;
}

std::unique_ptr<ModelSource> open_gguf(const std::filesystem::path& path) {
    TensorFiles files;
    files.missing_in = path.string();
    files.mappings.emplace_back(path);
    const GgufHeader header(path.string(), files.mappings.front().bytes());
    ModelDims dims = gguf_dims(header);
    files.table = header.tensors();
    const std::uint32_t layers = dims.layers();
    const std::uint32_t blocks = layers + header.count("qwen35.nextn_predict_layers").value_or(0);
    // Values are stored as the block holds them.
    return std::make_unique<FileModel>(
        path, std::move(dims), std::move(files),
        FileFormat{spellings, [=](std::string_view name) { return ignorable(name, layers, blocks); }, [](Role, std::span<float>) {}});
}

}  // namespace kestrel
