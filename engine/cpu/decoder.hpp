// The decode step: one token in, logits out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/abi.h"
#include "engine/cpu/ops.hpp"
#include "engine/cpu/thread_pool.hpp"
#include "engine/cpu/workspace.hpp"
#include "engine/model_config.hpp"
#include "engine/weights.hpp"

namespace kestrel::cpu {

struct DecoderOptions {
    std::uint32_t threads = 1;
    std::uint32_t max_positions = 1;
    GdnVariant gdn = GdnVariant::reg;
};

class Decoder {
  public:
    // `weights` is as row_arrangement has it, `workspace` what WorkspaceLayout(dims, max_positions) says; both 64-byte aligned and
    // alive as long as the decoder. Starts at position 0. Throws EngineError if the variant cannot take the model's shape.
    Decoder(ModelDims dims, const WeightLayout& weight_layout, const std::byte* weights, float* workspace, const DecoderOptions& options);

    void reset();

    // Feeds `token` at the next position; returns the greedy next token. Throws EngineError (KESTREL_BAD_ARGUMENT), with nothing
    // changed, if the token is not in the vocabulary or the key/value cache is full.
    std::int32_t decode(std::int32_t token);

    // Of the last token. Throw EngineError (KESTREL_BAD_ARGUMENT) if none was decoded since opening, reset or restore.
    [[nodiscard]] std::span<const float> logits() const { return output(layout_.logits, dims_.vocab); }
    [[nodiscard]] std::span<const float> hidden() const { return output(layout_.hidden, dims_.hidden); }
    [[nodiscard]] std::span<const float> final_norm() const { return output(layout_.final_norm, dims_.hidden); }
    // [v_heads][k_dim][v_dim] of a layer that has a recurrent state.
    [[nodiscard]] std::span<const float> gdn_state(std::uint32_t layer) const;

    // The sequence as bytes; equal sequences give equal bytes, whatever lies in the unused part of the cache.
    [[nodiscard]] std::size_t saved_bytes() const;
    void save(std::span<std::byte> out) const;
    void restore(std::span<const std::byte> in);

    [[nodiscard]] const ModelDims& dims() const { return dims_; }
    [[nodiscard]] const DecoderOptions& options() const { return options_; }

  private:
    struct SavedHeader;

    void gdn_layer(std::uint32_t layer);
    void gdn_gates(std::uint32_t layer);
    void attention_layer(std::uint32_t layer);
    void rotate(float* head) const;
    void mlp(std::uint32_t layer);
    void embed(std::int32_t token, float* hidden);
    void set_rotation();
    [[nodiscard]] SavedHeader header() const;
    template <class Visit>
    void visit_cache(const Visit& visit) const;
    [[nodiscard]] std::span<const float> output(std::size_t offset, std::size_t count) const;
    [[nodiscard]] float* piece(std::size_t offset) const { return workspace_ + offset; }
    [[nodiscard]] ArrangedMatrix matrix(std::uint32_t layer, Role role) const;
    [[nodiscard]] const float* weight(std::uint32_t layer, Role role) const { return weights_.at(layer, role).f32(); }  // not a matrix
    [[nodiscard]] GdnDelta delta_step(std::uint32_t layer) const;

    ModelDims dims_;
    DecoderOptions options_;
    WorkspaceLayout layout_;
    Weights weights_;
    float* workspace_;
    const Kernels& kernel_;
    ThreadPool pool_;
    std::uint64_t shape_id_;
    std::vector<std::uint32_t> number_in_kind_;  // per layer: how many of its kind come before it
    std::vector<std::byte> embedding_row_;       // as in a file
    std::vector<double> inverse_frequency_;      // [rotary_dim / 2]
    std::vector<float> cosine_;                  // at the current position
    std::vector<float> sine_;
    std::uint32_t position_ = 0;
    bool has_output_ = false;
};

}  // namespace kestrel::cpu
