// Shape of a model of the Qwen3.5 text family: gated-delta-net layers with a full-attention layer in between.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/head_order.hpp"

namespace kestrel {

struct ModelDims {
    std::uint32_t vocab = 0;
    std::uint32_t hidden = 0;
    std::uint32_t intermediate = 0;
    std::uint32_t heads = 0;
    std::uint32_t kv_heads = 0;
    std::uint32_t head_dim = 0;
    std::uint32_t rotary_dim = 0;  // leading dimensions of a head that RoPE turns
    std::uint32_t k_heads = 0;     // of a gated-delta-net layer
    std::uint32_t v_heads = 0;
    std::uint32_t k_dim = 0;
    std::uint32_t v_dim = 0;
    std::uint32_t conv_taps = 0;
    double rope_theta = 0.0;
    double rms_eps = 0.0;
    bool tied_head = false;
    HeadOrder head_order = HeadOrder::grouped;
    std::vector<bool> full_attention;  // per layer

    [[nodiscard]] std::uint32_t layers() const { return static_cast<std::uint32_t>(full_attention.size()); }
    [[nodiscard]] std::uint32_t attention_layers() const;
    [[nodiscard]] std::uint32_t gdn_layers() const { return layers() - attention_layers(); }
    [[nodiscard]] std::uint64_t key_width() const { return std::uint64_t{k_heads} * k_dim; }
    [[nodiscard]] std::uint64_t value_width() const { return std::uint64_t{v_heads} * v_dim; }
    [[nodiscard]] std::uint64_t conv_channels() const { return 2 * key_width() + value_width(); }
    [[nodiscard]] std::uint64_t state_elements() const { return value_width() * k_dim; }  // of one layer
};

// Layers 3, 7, 11, ... attend fully for interval 4.
[[nodiscard]] std::vector<bool> layers_by_interval(std::uint32_t layers, std::uint32_t interval);

// Throws EngineError (KESTREL_BAD_MODEL) naming `source`, the dimension, what was found and what is allowed. After this no
// product of dimensions of one tensor overflows 64 bits.
void validate(const ModelDims& dims, const std::string& source);

// Reads <directory>/config.json of model types qwen3_5 (nested text_config) and qwen3_5_text, and validates it.
// Throws EngineError: KESTREL_BAD_MODEL naming file and key, KESTREL_UNSUPPORTED for a variant this engine does not run.
[[nodiscard]] ModelDims read_hf_config(const std::filesystem::path& directory);

// The same from the parsed content; `file` names it in errors.
[[nodiscard]] ModelDims hf_dims(const nlohmann::json& root, const std::string& file);

}  // namespace kestrel
