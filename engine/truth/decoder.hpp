// The decode step of the model family in double: slow, single-threaded, and short enough to be believed after reading. Other engines are
// checked against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/backend.hpp"
#include "engine/model_config.hpp"
#include "engine/truth/steps.hpp"
#include "engine/weights.hpp"

namespace kestrel::truth {

// What one token leaves for the next, in doubles from the start of the workspace. Beyond the current position everything is zero.
class SequenceLayout {
  public:
    // Throws EngineError (KESTREL_OUT_OF_MEMORY) if the sizes exceed any address space.
    SequenceLayout(const ModelDims& dims, std::uint32_t max_positions);
    struct Piece {
        std::size_t offset = 0;
        std::size_t count = 0;
    };
    [[nodiscard]] Piece state(std::uint32_t layer) const { return first_.at(layer); }     // [v_heads][k_dim][v_dim]
    [[nodiscard]] Piece samples(std::uint32_t layer) const { return second_.at(layer); }  // [taps - 1][channels], oldest first
    [[nodiscard]] Piece keys(std::uint32_t layer) const { return first_.at(layer); }      // [max_positions][kv_heads][head_dim]
    [[nodiscard]] Piece values(std::uint32_t layer) const { return second_.at(layer); }
    [[nodiscard]] std::uint64_t bytes() const { return doubles_ * sizeof(double); }

  private:
    Piece take(std::uint64_t doubles, std::uint64_t times);
    std::vector<Piece> first_;   // per layer
    std::vector<Piece> second_;  // per layer
    std::uint64_t doubles_ = 0;
};

// Values of the switch KESTREL_TRUTH_ROUND: nothing is rounded, or every step's result (rounded_steps).
inline constexpr const char* rounding_values[] = {"none", "f32"};

class Decoder final : public Backend {
  public:
    explicit Decoder(const Opening& opening);
    // Other steps, for a test that plants a mistake.
    Decoder(const Opening& opening, const Steps& steps);

    void reset() override;
    std::int32_t decode(std::int32_t token) override;
    void read_logits(std::span<float> out) const override { read(logits_, out); }
    void read_hidden(std::span<float> out) const override { read(hidden_, out); }
    void read_final_norm(std::span<float> out) const override { read(final_norm_, out); }
    void read_gdn_state(std::uint32_t layer, std::span<float> out) const override;
    [[nodiscard]] std::size_t saved_bytes() const override;
    void save(std::span<std::byte> out) const override;
    void restore(std::span<const std::byte> in) override;
    [[nodiscard]] const char* effective_switch(std::size_t) const override { return rounding_values[rounded_ ? 1 : 0]; }

    // The last token's, unrounded.
    [[nodiscard]] const Vector& logits() const { return logits_; }

  private:
    struct SavedHeader;

    [[nodiscard]] Vector gdn_layer(std::uint32_t layer, In x);
    [[nodiscard]] Vector attention_layer(std::uint32_t layer, In x);
    [[nodiscard]] Vector mlp(std::uint32_t layer, In x) const;
    // Each head normalised with the weights of `role`, then turned.
    [[nodiscard]] Vector prepared_heads(std::uint32_t layer, Role role, In heads) const;

    [[nodiscard]] Vector multiply(std::uint32_t layer, Role role, std::size_t rows, In x) const;
    [[nodiscard]] Vector norm(std::uint32_t layer, Role role, In x) const;
    // The one place that knows how weights are held.
    [[nodiscard]] StoredTensor stored(std::uint32_t layer, Role role) const;
    [[nodiscard]] Vector values_of(std::uint32_t layer, Role role, std::size_t count) const;

    [[nodiscard]] Out piece(const SequenceLayout::Piece& where) { return {sequence_ + where.offset, where.count}; }
    void read(const Vector& from, std::span<float> to) const;
    [[nodiscard]] SavedHeader header() const;

    ModelDims dims_;
    bool rounded_ = false;
    Steps steps_;
    Weights weights_;
    SequenceLayout layout_;
    double* sequence_;
    std::uint64_t shape_id_;
    std::uint32_t max_positions_;
    std::uint32_t position_ = 0;
    Vector hidden_, final_norm_, logits_;  // of the last token; empty if there is none
};

}  // namespace kestrel::truth
