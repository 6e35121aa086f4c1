#include "engine/model_config.hpp"

#include <algorithm>
#include <cmath>

#include "engine/error.hpp"
#include "engine/json_file.hpp"

namespace kestrel {
namespace {

using nlohmann::json;

// Far above any model of the family, low enough that three of them multiply without overflow.
constexpr std::uint32_t largest_dimension = 1U << 20;
constexpr std::uint32_t largest_layer_count = 4096;
constexpr std::uint32_t largest_conv = 64;
constexpr std::uintmax_t largest_config_bytes = std::uintmax_t{16} << 20;

// One JSON object with the names needed for error messages.
class Fields {
  public:
    Fields(const json& object, std::string file, std::string prefix)
        : object_(object), file_(std::move(file)), prefix_(std::move(prefix)) {}

    [[nodiscard]] const json* find(const char* key) const {
        const auto at = object_.find(key);
        return at == object_.end() || at->is_null() ? nullptr : &*at;
    }

    [[noreturn]] void wrong(const char* key, const std::string& expected, const json& found) const {
        std::string text = found.dump(-1, ' ', true, json::error_handler_t::replace);
        if (text.size() > 60) text = text.substr(0, 60) + "...";
        bad_model(file_ + ": key \"" + prefix_ + key + "\": expected " + expected + ", found " + text);
    }

    [[nodiscard]] const json& need(const char* key) const {
        const json* value = find(key);
        if (value == nullptr) bad_model(file_ + ": key \"" + prefix_ + key + "\" is missing");
        return *value;
    }

    [[nodiscard]] std::uint32_t count(const char* key, std::uint32_t most = largest_dimension) const {
        const json& value = need(key);
        if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 || value.get<std::uint64_t>() > most) {
            wrong(key, "a whole number from 1 to " + std::to_string(most), value);
        }
        return value.get<std::uint32_t>();
    }
    [[nodiscard]] std::uint32_t count_or(const char* key, std::uint32_t otherwise, std::uint32_t most) const {
        return find(key) == nullptr ? otherwise : count(key, most);
    }

    [[nodiscard]] double number(const char* key) const {
        const json& value = need(key);
        if (!value.is_number()) wrong(key, "a number", value);
        return value.get<double>();
    }

    [[nodiscard]] bool flag_or(const char* key, bool otherwise) const {
        const json* value = find(key);
        if (value == nullptr) return otherwise;
        if (!value->is_boolean()) wrong(key, "true or false", *value);
        return value->get<bool>();
    }

    [[nodiscard]] std::string text_or(const char* key, const std::string& otherwise) const {
        const json* value = find(key);
        if (value == nullptr) return otherwise;
        if (!value->is_string()) wrong(key, "a string", *value);
        return value->get<std::string>();
    }

    [[nodiscard]] Fields inside(const char* key) const {
        const json& value = need(key);
        if (!value.is_object()) wrong(key, "an object", value);
        return {value, file_, prefix_ + key + "."};
    }

    void must_be(const char* key, const std::string& expected, const std::string& otherwise) const {
        const std::string found = text_or(key, otherwise);
        if (found != expected) {
            fail(KESTREL_UNSUPPORTED,
                 file_ + ": key \"" + prefix_ + key + "\": this engine runs \"" + expected + "\" only, found \"" + found + "\"");
        }
    }
    void must_be(const char* key, bool expected) const {
        if (flag_or(key, expected) != expected) {
            fail(KESTREL_UNSUPPORTED,
                 file_ + ": key \"" + prefix_ + key + "\": this engine runs " + (expected ? "true" : "false") + " only");
        }
    }

  private:
    const json& object_;
    std::string file_;
    std::string prefix_;
};

std::vector<bool> layer_kinds(const Fields& text) {
    const std::uint32_t layers = text.count("num_hidden_layers", largest_layer_count);
    const json* types = text.find("layer_types");
    if (types == nullptr) return layers_by_interval(layers, text.count_or("full_attention_interval", 4, largest_layer_count));
    if (!types->is_array() || types->size() != layers) {
        text.wrong("layer_types", "an array of " + std::to_string(layers) + " names (num_hidden_layers)", *types);
    }
    std::vector<bool> kinds;
    for (const json& type : *types) {
        if (type != "linear_attention" && type != "full_attention") {
            text.wrong("layer_types", "\"linear_attention\" or \"full_attention\"", type);
        }
        kinds.push_back(type == "full_attention");
    }
    return kinds;
}

void read_rope(const Fields& text, ModelDims& dims) {
    const bool nested = text.find("rope_parameters") != nullptr;
    const Fields rope = nested ? text.inside("rope_parameters") : text;
    if (nested) rope.must_be("rope_type", std::string("default"), "default");
    dims.rope_theta = rope.number("rope_theta");
    const Fields& owner = rope.find("partial_rotary_factor") != nullptr ? rope : text;
    const double part = owner.find("partial_rotary_factor") != nullptr ? owner.number("partial_rotary_factor") : 1.0;
    if (!(part > 0.0 && part <= 1.0)) {
        owner.wrong("partial_rotary_factor", "a number above 0, at most 1", owner.need("partial_rotary_factor"));
    }
    dims.rotary_dim = static_cast<std::uint32_t>(part * dims.head_dim);
}

}  // namespace

std::uint32_t ModelDims::attention_layers() const {
    return static_cast<std::uint32_t>(std::count(full_attention.begin(), full_attention.end(), true));
}

std::vector<bool> layers_by_interval(std::uint32_t layers, std::uint32_t interval) {
    std::vector<bool> kinds(layers);
    for (std::uint32_t i = 0; i < layers; ++i) kinds[i] = (i + 1) % interval == 0;
    return kinds;
}

void validate(const ModelDims& d, const std::string& source) {
    const auto in_range = [&](const char* name, std::uint64_t value, std::uint64_t most) {
        if (value < 1 || value > most) {
            bad_model(source + ": " + name + " is " + std::to_string(value) + ", allowed are 1 to " + std::to_string(most));
        }
    };
    const auto divides = [&](const char* small, std::uint32_t divisor, const char* large, std::uint32_t value) {
        if (value % divisor != 0) {
            bad_model(source + ": " + small + " (" + std::to_string(divisor) + ") must divide " + large + " (" + std::to_string(value) +
                      ")");
        }
    };
    in_range("the number of layers", d.layers(), largest_layer_count);
    in_range("the vocabulary", d.vocab, largest_dimension);
    in_range("the hidden size", d.hidden, largest_dimension);
    in_range("the intermediate size", d.intermediate, largest_dimension);
    in_range("the number of attention heads", d.heads, largest_dimension);
    in_range("the number of key/value heads", d.kv_heads, largest_dimension);
    in_range("the head dimension", d.head_dim, largest_dimension);
    in_range("the number of linear key heads", d.k_heads, largest_dimension);
    in_range("the number of linear value heads", d.v_heads, largest_dimension);
    in_range("the linear key dimension", d.k_dim, largest_dimension);
    in_range("the linear value dimension", d.v_dim, largest_dimension);
    in_range("the convolution width", d.conv_taps, largest_conv);
    in_range("heads x head dimension", std::uint64_t{d.heads} * d.head_dim, largest_dimension);
    in_range("convolution channels", d.conv_channels(), largest_dimension);
    divides("key/value heads", d.kv_heads, "attention heads", d.heads);
    divides("linear key heads", d.k_heads, "linear value heads", d.v_heads);
    if (d.rotary_dim > d.head_dim || d.rotary_dim < 2 || d.rotary_dim % 2 != 0) {
        bad_model(source + ": " + std::to_string(d.rotary_dim) + " rotary dimensions; expected an even number from 2 to " +
                  std::to_string(d.head_dim));
    }
    if (!(d.rope_theta > 0.0 && std::isfinite(d.rope_theta))) bad_model(source + ": rope_theta must be a positive number");
    if (!(d.rms_eps > 0.0 && d.rms_eps < 1.0)) bad_model(source + ": rms_norm_eps must lie between 0 and 1");
}

ModelDims read_hf_config(const std::filesystem::path& directory) {
    const std::filesystem::path file = directory / "config.json";
    return hf_dims(read_json(file, largest_config_bytes), file.string());
}

ModelDims hf_dims(const json& root_json, const std::string& file) {
    const Fields root(root_json, file, "");
    const std::string type = root.text_or("model_type", "");
    if (type != "qwen3_5" && type != "qwen3_5_text") {
        fail(KESTREL_UNSUPPORTED, file + ": key \"model_type\": expected qwen3_5 or qwen3_5_text, found \"" + type + "\"");
    }
    const Fields text = root.find("text_config") != nullptr ? root.inside("text_config") : root;

    ModelDims dims;
    dims.vocab = text.count("vocab_size");
    dims.hidden = text.count("hidden_size");
    dims.intermediate = text.count("intermediate_size");
    dims.heads = text.count("num_attention_heads");
    dims.kv_heads = text.count("num_key_value_heads");
    dims.head_dim = text.count("head_dim");
    dims.k_heads = text.count("linear_num_key_heads");
    dims.v_heads = text.count("linear_num_value_heads");
    dims.k_dim = text.count("linear_key_head_dim");
    dims.v_dim = text.count("linear_value_head_dim");
    dims.conv_taps = text.count("linear_conv_kernel_dim", largest_conv);
    dims.rms_eps = text.number("rms_norm_eps");
    dims.full_attention = layer_kinds(text);
    // A model saved whole may say it in either place; the outer one is what the head was saved by.
    dims.tied_head = root.flag_or("tie_word_embeddings", text.flag_or("tie_word_embeddings", false));
    read_rope(text, dims);
    text.must_be("hidden_act", std::string("silu"), "silu");
    text.must_be("attention_bias", false);
    text.must_be("attn_output_gate", true);
    validate(dims, file);
    return dims;
}

}  // namespace kestrel
