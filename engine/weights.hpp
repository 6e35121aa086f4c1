// All weights of a model in one block of f32, and where each tensor lies in it.
//
// Values are the checkpoint's own: zero-centred norms hold w (kernels multiply by 1 + w), A_log and dt_bias are as saved.
// Matrices are row-major [out][in]. The one rearranged tensor is conv1d.weight, stored [tap][channel].
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/model_config.hpp"

namespace kestrel {

// What a tensor is, whatever its layer.
enum class Role : std::uint8_t {
    embed,
    final_norm,
    head,
    input_norm,
    post_norm,
    gate,
    up,
    down,  // every layer
    qkv,
    z,
    beta,
    alpha,
    conv,
    a_log,
    dt_bias,
    gated_norm,
    gdn_out,  // gated-delta-net layers
    q,
    k,
    v,
    attention_out,
    q_norm,
    k_norm,  // attention layers
};
inline constexpr std::size_t role_count = static_cast<std::size_t>(Role::k_norm) + 1;

struct TensorSpec {
    Role role = Role::embed;
    std::uint32_t layer = 0;           // 0 where it belongs to none
    std::string name;                  // canonical: as in a text-only checkpoint, "model.layers.0.mlp.up_proj.weight"
    std::vector<std::uint64_t> shape;  // canonical
    std::size_t offset = 0;            // in floats, from the start of the block
    [[nodiscard]] std::uint64_t elements() const;
};

// Canonical order and place of every tensor; each starts on a 64-byte boundary.
class WeightLayout {
  public:
    explicit WeightLayout(const ModelDims& dims);
    [[nodiscard]] std::span<const TensorSpec> tensors() const { return tensors_; }
    [[nodiscard]] std::uint64_t bytes() const { return floats_ * sizeof(float); }
    [[nodiscard]] std::uint64_t parameters() const;
    // Equal only for blocks that are interchangeable: the arrangement and the shape of the model.
    [[nodiscard]] std::string id() const;
    [[nodiscard]] std::uint64_t shape_hash() const;  // of names and shapes

  private:
    void add(Role role, std::uint32_t layer, std::string name, std::vector<std::uint64_t> shape);
    std::vector<TensorSpec> tensors_;
    std::uint64_t floats_ = 0;
};

// Weights of a block, by role.
class Weights {
  public:
    Weights(const ModelDims& dims, const WeightLayout& layout, const float* block);
    // Null where the layer has no such tensor. Roles outside layers: layer 0.
    [[nodiscard]] const float* at(std::uint32_t layer, Role role) const { return layers_[layer][static_cast<std::size_t>(role)]; }

  private:
    std::vector<std::array<const float*, role_count>> layers_;
};

// Fills `block` (layout.bytes()) from model.safetensors, or from the files of model.safetensors.index.json, in `directory`.
// Names may start with "model." or "model.language_model.". Throws EngineError (KESTREL_BAD_MODEL).
void load_hf_weights(const std::filesystem::path& directory, const WeightLayout& layout, float* block);

// Throws what load_hf_weights would, without reading a value: before any memory of a claimed size is allocated.
void check_hf_weights(const std::filesystem::path& directory, const WeightLayout& layout);

// Canonical digest (digest.hpp) of a filled block, tensors in the layout's order, 64 hexadecimal digits.
[[nodiscard]] std::string digest_of(const WeightLayout& layout, const float* block);

// Between a tensor's canonical values and its place in the block; both have elements() floats.
void to_block(const TensorSpec& tensor, std::span<const float> canonical, float* block);
void from_block(const TensorSpec& tensor, const float* block, std::span<float> canonical);

}  // namespace kestrel
