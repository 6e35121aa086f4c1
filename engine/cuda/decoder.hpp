// The decode step on a device: one token in, the next one out, everything between them in one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/backend.hpp"
#include "engine/cuda/handles.hpp"
#include "engine/cuda/launch.hpp"
#include "engine/cuda/workspace.hpp"
#include "engine/model_config.hpp"
#include "engine/weights.hpp"

namespace kestrel::cuda {

enum class GdnVariant : std::uint8_t { reg, ref };
enum class LaunchMode : std::uint8_t { stream, graph };  // kernel by kernel, or one replay of a captured token
enum class Overlap : std::uint8_t { off, on };           // whether a kernel may begin while the one before it ends
enum class Fusion : std::uint8_t { on, off };            // one launch for what one launch can do, or one for each operation: the same bits

class Decoder {
  public:
    // Weights (arranged as planes.hpp says) and workspace are device memory and outlive the decoder. Where k_gdn_delta_reg does not serve
    // the model's shape, `gdn` becomes ref: see gdn_variant(). Starts at position 0.
    Decoder(const Opening& opening, GdnVariant gdn, LaunchMode launch, Overlap overlap, Fusion fusion);

    // As Backend says.
    void reset();
    std::int32_t decode(std::int32_t token);
    void read_logits(std::span<float> out) const;
    void read_hidden(std::span<float> out) const;
    void read_final_norm(std::span<float> out) const;
    void read_gdn_state(std::uint32_t layer, std::span<float> out) const;
    [[nodiscard]] std::size_t saved_bytes() const;
    void save(std::span<std::byte> out) const;
    void restore(std::span<const std::byte> in);

    // What runs, not what was asked for.
    [[nodiscard]] GdnVariant gdn_variant() const { return gdn_; }
    [[nodiscard]] LaunchMode launch_mode() const { return launch_; }
    [[nodiscard]] Overlap overlap() const { return overlap_; }
    [[nodiscard]] Fusion fusion() const { return fusion_; }
    // The captured token; captures it now if it was not.
    [[nodiscard]] cudaGraph_t captured();

  private:
    struct SavedHeader;

    void enqueue_token();
    void gdn_layer(std::uint32_t layer);
    void attention_layer(std::uint32_t layer);
    void mlp(std::uint32_t layer);
    [[nodiscard]] GdnStep gdn_step(std::uint32_t layer) const;
    [[nodiscard]] GdnInputs gdn_inputs(std::uint32_t layer) const;
    [[nodiscard]] float q_scale() const;
    [[nodiscard]] SavedHeader header() const;
    void read_output(std::size_t offset, std::span<float> out) const;
    void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const;
    void synchronize() const;
    template <class Visit>
    void visit_cache(const Visit& visit) const;
    // `n` values and the room where their parts are, or will be; only the values where they cannot be split.
    [[nodiscard]] Activations activations(const float* values, std::size_t n) const;
    [[nodiscard]] float* parts_of(std::size_t n) const { return can_split(n) ? piece(layout_.parts) : nullptr; }
    [[nodiscard]] Product product(std::uint32_t layer, Role role, std::uint64_t rows, std::uint64_t cols, std::size_t y) const;
    [[nodiscard]] Matrix matrix(std::uint32_t layer, Role role, std::uint64_t rows, std::uint64_t cols) const;
    [[nodiscard]] const float* vector(std::uint32_t layer, Role role) const { return weights_.at(layer, role).f32(); }
    [[nodiscard]] Queue queue() const { return {stream_.get(), overlap_ == Overlap::on}; }
    [[nodiscard]] float* piece(std::size_t offset) const { return workspace_ + offset; }

    ModelDims dims_;
    GdnVariant gdn_;
    LaunchMode launch_;
    Overlap overlap_;
    Fusion fusion_;
    std::uint32_t max_positions_;
    WorkspaceLayout layout_;
    Weights weights_;
    float* workspace_;
    std::uint64_t shape_id_;
    std::vector<std::uint32_t> number_in_kind_;  // per layer: how many of its kind come before it
    std::uint32_t position_ = 0;
    bool has_output_ = false;

    Stream stream_;
    // Not in the workspace, which arms share one after the other.
    PinnedBuffer<Control> host_control_;
    Buffer<Control> control_;
    Buffer<double> inverse_frequency_;  // [pairs]
    Buffer<float> rotation_;            // cosine[pairs], sine[pairs]
    Buffer<std::byte> argmax_scratch_;
    Graph graph_;
    GraphExec executable_;
};

}  // namespace kestrel::cuda
