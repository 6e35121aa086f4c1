#include "engine/cpu/workspace.hpp"

#include <algorithm>
#include <string>

#include "engine/attention_chunks.hpp"
#include "engine/error.hpp"

namespace kestrel::cpu {
namespace {

constexpr std::uint64_t floats_per_line = 16;

// Hands out pieces of a block that is as large as they need.
class Pieces {
  public:
    explicit Pieces(std::uint32_t max_positions) : max_positions_(max_positions) {}

    // `count` pieces of `floats`; returns the first's offset and sets the distance between them.
    std::size_t take(std::uint64_t count, std::uint64_t floats, std::size_t& stride) {
        const std::uint64_t first = floats_;
        std::uint64_t bytes = 0;
        stride = (floats + floats_per_line - 1) / floats_per_line * floats_per_line;
        if (__builtin_mul_overflow(count, stride, &floats_) || __builtin_add_overflow(floats_, first, &floats_) ||
            __builtin_mul_overflow(floats_, sizeof(float), &bytes)) {
            fail(KESTREL_OUT_OF_MEMORY,
                 "a key/value cache of " + std::to_string(max_positions_) + " positions does not fit any memory; use fewer positions");
        }
        return first;
    }
    std::size_t take(std::uint64_t floats) {
        std::size_t stride = 0;
        return take(1, floats, stride);
    }
    [[nodiscard]] std::uint64_t bytes() const { return floats_ * sizeof(float); }

  private:
    std::uint32_t max_positions_;
    std::uint64_t floats_ = 0;
};

}  // namespace

WorkspaceLayout::WorkspaceLayout(const ModelDims& d, std::uint32_t max_positions) {
    Pieces pieces(max_positions);
    const std::uint64_t heads_width = std::uint64_t{d.heads} * d.head_dim;
    const std::uint64_t kv_width = std::uint64_t{d.kv_heads} * d.head_dim;
    gdn_state = pieces.take(d.gdn_layers(), d.state_elements(), gdn_state_stride);
    conv_state = pieces.take(d.gdn_layers(), (d.conv_taps - 1) * d.conv_channels(), conv_state_stride);
    key_cache = pieces.take(d.attention_layers(), kv_width * max_positions, cache_stride);
    value_cache = pieces.take(d.attention_layers(), kv_width * max_positions, cache_stride);
    hidden = pieces.take(d.hidden);
    final_norm = pieces.take(d.hidden);
    logits = pieces.take(d.vocab);
    normed = pieces.take(d.hidden);
    projected = pieces.take(d.hidden);
    mixed = pieces.take(d.conv_channels());
    z = pieces.take(d.value_width());
    beta = pieces.take(d.v_heads);
    alpha = pieces.take(d.v_heads);
    mixer_out = pieces.take(std::max(d.value_width(), heads_width));
    q_and_gate = pieces.take(2 * heads_width);
    q = pieces.take(heads_width);
    k = pieces.take(kv_width);
    v = pieces.take(kv_width);
    scores = pieces.take(std::max(std::uint64_t{d.heads} * max_positions, attention_scratch_floats(d.heads, d.head_dim, max_positions)));
    act = pieces.take(d.intermediate);
    up = pieces.take(d.intermediate);
    bytes = pieces.bytes();
}

}  // namespace kestrel::cpu
