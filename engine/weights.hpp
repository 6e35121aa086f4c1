// All weights of a model in one block, and where each tensor lies in it.
//
// The block holds what the computation needs, whatever the format of the file: norms are the factor that is multiplied (Hugging Face
// stores it minus one), decay_rate is -exp(A_log) (GGUF stores it so). Matrices are row-major [out][in], in the type of the file;
// everything else, and the small matrices beta and alpha, which f32 kernels read, is f32. Value heads stay in the file's order
// (head_order.hpp). The one rearranged tensor is conv1d.weight, held as [tap][channel].
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/model_config.hpp"
#include "engine/tensor_type.hpp"

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
    decay_rate,
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

// Held in the file's type; the rest is f32.
[[nodiscard]] bool is_matrix(Role role) noexcept;

struct TensorSpec {
    Role role = Role::embed;
    std::uint32_t layer = 0;           // 0 where it belongs to none
    std::string name;                  // canonical: as in a text-only checkpoint, "model.layers.0.mlp.up_proj.weight"
    std::vector<std::uint64_t> shape;  // canonical
    TensorType type = TensorType::f32;
    std::size_t offset = 0;  // in bytes, from the start of the block
    [[nodiscard]] std::uint64_t elements() const;
    [[nodiscard]] std::uint64_t bytes() const { return bytes_of(info_of(type), elements()); }
};

// The tensors of a model in canonical order, without type and place.
[[nodiscard]] std::vector<TensorSpec> tensors_of(const ModelDims& dims);

// The type in which a matrix is held.
using TypeChoice = std::function<TensorType(const TensorSpec& matrix)>;

// Type and place of every tensor; each starts on a 64-byte boundary.
class WeightLayout {
  public:
    // Throws EngineError (KESTREL_BAD_MODEL) naming the tensor, but no file, if a row of it is not a whole number of its type's blocks.
    WeightLayout(const ModelDims& dims, const TypeChoice& type_of);
    [[nodiscard]] std::span<const TensorSpec> tensors() const { return tensors_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint64_t parameters() const;
    // Equal only for blocks that are interchangeable: shapes, types and the order of heads.
    [[nodiscard]] std::string id() const;
    [[nodiscard]] std::uint64_t shape_hash() const;  // of names, shapes and the order of heads

  private:
    std::vector<TensorSpec> tensors_;
    HeadOrder head_order_;
    std::uint64_t bytes_ = 0;
};

// Weights of a block, by role.
class Weights {
  public:
    Weights(const ModelDims& dims, const WeightLayout& layout, const std::byte* block);
    // Its data is null where the layer has no such tensor. Roles outside layers: layer 0.
    [[nodiscard]] StoredTensor at(std::uint32_t layer, Role role) const { return layers_[layer][static_cast<std::size_t>(role)]; }

  private:
    std::vector<std::array<StoredTensor, role_count>> layers_;
};

// Reads a tensor's elements first to first + count, whole blocks, as tensor_type.hpp says, out of a block that may be arranged otherwise.
using ReadStored = void (*)(const TensorSpec& tensor, const std::byte* block, std::uint64_t first, std::uint64_t count, std::byte* stored);

// Canonical digest (digest.hpp) of a filled block, tensors in the canonical order, 64 hexadecimal digits: of the values that the block
// holds, so equal for blocks of other types that hold the same ones, and for any number of threads. `read` null: the block is as
// WeightLayout says.
[[nodiscard]] std::string digest_of(const WeightLayout& layout, const std::byte* block, std::uint32_t threads, ReadStored read = nullptr);

// Writes an f32 tensor's canonical values to its place.
void to_block(const TensorSpec& tensor, std::span<const float> canonical, std::byte* block);

}  // namespace kestrel
