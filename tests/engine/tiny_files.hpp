// A model of two layers, written by tests themselves as a Hugging Face directory or a GGUF file, so that every byte can be changed.
//
// Layer 0 attends, layer 1 is a gated-delta-net layer with key dimension 8 and value dimension 16, the epsilon is unusual: none of it
// follows the usual pattern. Weights are multiples of 1/64, so both formats hold exactly the same ones.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kestrel::test {

template <class T>
std::string raw(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <class T>
std::string raw_all(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

enum class Stored { plain, norm, a_log };

struct TinyTensor {
    std::string hf;
    std::string gguf;
    std::vector<std::uint64_t> shape;  // row-major
    Stored stored = Stored::plain;
    std::vector<float> values;  // as Hugging Face stores them

    [[nodiscard]] std::vector<float> gguf_values() const {
        std::vector<float> out = values;
        for (float& value : out) {
            if (stored == Stored::norm) value += 1.0F;
            if (stored == Stored::a_log) value = static_cast<float>(-std::exp(double{value}));
        }
        return out;
    }
};

inline std::vector<TinyTensor> tiny_tensors() {
    std::vector<TinyTensor> all{
        {"model.embed_tokens.weight", "token_embd.weight", {16, 32}, {}, {}},
        {"model.norm.weight", "output_norm.weight", {32}, Stored::norm, {}},
        {"lm_head.weight", "output.weight", {16, 32}, {}, {}},
        {"model.layers.0.self_attn.q_proj.weight", "blk.0.attn_q.weight", {64, 32}, {}, {}},
        {"model.layers.0.self_attn.k_proj.weight", "blk.0.attn_k.weight", {16, 32}, {}, {}},
        {"model.layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight", {16, 32}, {}, {}},
        {"model.layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight", {32, 32}, {}, {}},
        {"model.layers.0.self_attn.q_norm.weight", "blk.0.attn_q_norm.weight", {16}, Stored::norm, {}},
        {"model.layers.0.self_attn.k_norm.weight", "blk.0.attn_k_norm.weight", {16}, Stored::norm, {}},
        {"model.layers.1.linear_attn.in_proj_qkv.weight", "blk.1.attn_qkv.weight", {48, 32}, {}, {}},
        {"model.layers.1.linear_attn.in_proj_z.weight", "blk.1.attn_gate.weight", {32, 32}, {}, {}},
        {"model.layers.1.linear_attn.in_proj_b.weight", "blk.1.ssm_beta.weight", {2, 32}, {}, {}},
        {"model.layers.1.linear_attn.in_proj_a.weight", "blk.1.ssm_alpha.weight", {2, 32}, {}, {}},
        {"model.layers.1.linear_attn.conv1d.weight", "blk.1.ssm_conv1d.weight", {48, 1, 4}, {}, {}},
        {"model.layers.1.linear_attn.A_log", "blk.1.ssm_a", {2}, Stored::a_log, {}},
        {"model.layers.1.linear_attn.dt_bias", "blk.1.ssm_dt.bias", {2}, {}, {}},
        {"model.layers.1.linear_attn.norm.weight", "blk.1.ssm_norm.weight", {16}, {}, {}},
        {"model.layers.1.linear_attn.out_proj.weight", "blk.1.ssm_out.weight", {32, 32}, {}, {}},
    };
    for (const std::string layer : {"0", "1"}) {
        const std::string hf = "model.layers." + layer + ".";
        const std::string gguf = "blk." + layer + ".";
        all.push_back({hf + "input_layernorm.weight", gguf + "attn_norm.weight", {32}, Stored::norm, {}});
        all.push_back({hf + "post_attention_layernorm.weight", gguf + "post_attention_norm.weight", {32}, Stored::norm, {}});
        all.push_back({hf + "mlp.gate_proj.weight", gguf + "ffn_gate.weight", {32, 32}, {}, {}});
        all.push_back({hf + "mlp.up_proj.weight", gguf + "ffn_up.weight", {32, 32}, {}, {}});
        all.push_back({hf + "mlp.down_proj.weight", gguf + "ffn_down.weight", {32, 32}, {}, {}});
    }
    std::uint32_t state = 1;
    for (TinyTensor& tensor : all) {
        std::uint64_t elements = 1;
        for (const std::uint64_t extent : tensor.shape) elements *= extent;
        for (std::uint64_t e = 0; e < elements; ++e) {
            state = state * 1664525U + 1013904223U;
            tensor.values.push_back(static_cast<float>(static_cast<int>(state >> 26U) - 32) / 64.0F);
        }
    }
    return all;
}

// A Hugging Face directory.
struct TinyHf {
    struct Entry {
        std::string name;
        std::string dtype;
        std::vector<std::uint64_t> shape;
        std::string data;
    };
    TinyHf() {
        for (const TinyTensor& tensor : tiny_tensors()) entries.push_back({tensor.hf, "F32", tensor.shape, raw_all(tensor.values)});
        config = {{"model_type", "qwen3_5_text"},
                  {"vocab_size", 16},
                  {"hidden_size", 32},
                  {"intermediate_size", 32},
                  {"num_hidden_layers", 2},
                  {"layer_types", {"full_attention", "linear_attention"}},
                  {"num_attention_heads", 2},
                  {"num_key_value_heads", 1},
                  {"head_dim", 16},
                  {"linear_num_key_heads", 1},
                  {"linear_num_value_heads", 2},
                  {"linear_key_head_dim", 8},
                  {"linear_value_head_dim", 16},
                  {"linear_conv_kernel_dim", 4},
                  {"rms_norm_eps", 0.0009765625},
                  {"tie_word_embeddings", false},
                  {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}, {"partial_rotary_factor", 0.25}}}};
    }
    [[nodiscard]] Entry& at(const std::string& name) {
        for (Entry& entry : entries) {
            if (entry.name == name) return entry;
        }
        throw std::runtime_error("no entry " + name);
    }
    // The file for the entries from first to last; the header's text may be changed on its way.
    [[nodiscard]] std::string safetensors(
        std::size_t first, std::size_t last, const std::function<void(std::string&)>& change = [](std::string&) {}) const {
        nlohmann::ordered_json header = nlohmann::ordered_json::object();
        std::string data;
        for (std::size_t i = first; i < last; ++i) {
            const Entry& entry = entries[i];
            header[entry.name] = {
                {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {data.size(), data.size() + entry.data.size()}}};
            data += entry.data;
        }
        std::string text = header.dump();
        change(text);
        return raw(std::uint64_t{text.size()}) + text + data;
    }
    template <class Folder>  // with write(name, bytes)
    void write(const Folder& folder) const {
        folder.write("config.json", config.dump());
        folder.write("model.safetensors", safetensors(0, entries.size()));
    }

    std::vector<Entry> entries;
    nlohmann::json config;
};

// A GGUF file.
struct TinyGguf {
    struct Entry {
        std::string name;
        std::vector<std::uint64_t> ne;  // the fastest first
        std::uint32_t type = 0;
        std::string data;
        std::int64_t offset = -1;  // -1: where it lies
    };
    static std::string text(const std::string& value) { return raw(std::uint64_t{value.size()}) + value; }
    static std::string u32(std::uint32_t value) { return raw(std::uint32_t{4}) + raw(value); }
    static std::string f32(float value) { return raw(std::uint32_t{6}) + raw(value); }
    static std::string string(const std::string& value) { return raw(std::uint32_t{8}) + text(value); }
    static std::string array(std::uint32_t type, std::uint64_t count, const std::string& elements) {
        return raw(std::uint32_t{9}) + raw(type) + raw(count) + elements;
    }

    TinyGguf() {
        for (const TinyTensor& tensor : tiny_tensors()) {
            std::vector<std::uint64_t> ne(tensor.shape.rbegin(), tensor.shape.rend());
            if (ne.size() == 3) ne.erase(ne.begin() + 1);
            entries.push_back({tensor.gguf, ne, 0, raw_all(tensor.gguf_values()), -1});
        }
        keys = {{"general.architecture", string("qwen35")},
                {"qwen35.vocab_size", u32(16)},
                {"qwen35.block_count", u32(2)},
                {"qwen35.embedding_length", u32(32)},
                {"qwen35.feed_forward_length", u32(32)},
                {"qwen35.attention.head_count", u32(2)},
                {"qwen35.attention.head_count_kv", u32(1)},
                {"qwen35.attention.key_length", u32(16)},
                {"qwen35.attention.value_length", u32(16)},
                {"qwen35.attention.layer_norm_rms_epsilon", f32(0.0009765625F)},
                {"qwen35.attention.recurrent_layers", array(7, 2, std::string("\0\1", 2))},
                {"qwen35.full_attention_interval", u32(4)},
                {"qwen35.rope.freq_base", f32(10000.0F)},
                {"qwen35.rope.dimension_count", u32(4)},
                {"qwen35.rope.dimension_sections", array(5, 4, std::string(16, '\0'))},
                {"qwen35.ssm.conv_kernel", u32(4)},
                {"qwen35.ssm.state_size", u32(8)},
                {"qwen35.ssm.group_count", u32(1)},
                {"qwen35.ssm.time_step_rank", u32(2)},
                {"qwen35.ssm.inner_size", u32(32)}};
    }
    [[nodiscard]] Entry& at(const std::string& name) {
        for (Entry& entry : entries) {
            if (entry.name == name) return entry;
        }
        throw std::runtime_error("no entry " + name);
    }
    void erase(const std::string& name) {
        std::erase_if(entries, [&](const Entry& entry) { return entry.name == name; });
    }
    void set(const std::string& key, const std::string& typed_value) {
        for (auto& [name, value] : keys) {
            if (name == key) {
                value = typed_value;
                return;
            }
        }
        keys.emplace_back(key, typed_value);
    }
    void erase_key(const std::string& key) {
        std::erase_if(keys, [&](const auto& entry) { return entry.first == key; });
    }
    [[nodiscard]] std::string header() const {
        std::string out = magic + raw(version) + raw(tensor_count.value_or(entries.size())) + raw(key_count.value_or(keys.size()));
        for (const auto& [key, value] : keys) out += text(key) + value;
        std::uint64_t at = 0;
        for (const Entry& entry : entries) {
            out += text(entry.name) + raw(static_cast<std::uint32_t>(entry.ne.size())) + raw_all(entry.ne) + raw(entry.type) +
                   raw(entry.offset >= 0 ? static_cast<std::uint64_t>(entry.offset) : at);
            at += padded(entry.data.size());
        }
        return out;
    }
    [[nodiscard]] std::string bytes() const {
        std::string out = header();
        out.resize(padded(out.size()));
        for (const Entry& entry : entries) {
            out += entry.data;
            out.resize(out.size() + padded(entry.data.size()) - entry.data.size());
        }
        return out;
    }
    [[nodiscard]] std::uint64_t padded(std::uint64_t size) const { return (size + alignment - 1) / alignment * alignment; }

    std::string magic = "GGUF";
    std::uint32_t version = 3;
    std::uint64_t alignment = 32;
    std::optional<std::uint64_t> tensor_count;
    std::optional<std::uint64_t> key_count;
    std::vector<std::pair<std::string, std::string>> keys;
    std::vector<Entry> entries;
};

}  // namespace kestrel::test
