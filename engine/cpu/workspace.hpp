// Everything that changes while decoding, in one block: the sequence (recurrent and convolution state, key/value cache), the
// outputs of the last token, and scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/model_config.hpp"

namespace kestrel::cpu {

// Floats from the start of the block; each piece starts on a 64-byte boundary.
struct WorkspaceLayout {
    // Throws EngineError (KESTREL_OUT_OF_MEMORY) if the sizes exceed any address space.
    WorkspaceLayout(const ModelDims& dims, std::uint32_t max_positions);

    // The sequence. One piece per layer of the kind, one after the other.
    std::size_t gdn_state = 0;    // [gdn layers][v_heads][k_dim][v_dim]
    std::size_t conv_state = 0;   // [gdn layers][taps - 1][channels], oldest first
    std::size_t key_cache = 0;    // [attention layers][kv_heads][max_positions][head_dim]
    std::size_t value_cache = 0;  // the same
    // Distance from one layer's piece to the next.
    std::size_t gdn_state_stride = 0;
    std::size_t conv_state_stride = 0;
    std::size_t cache_stride = 0;
    // Outputs of the last token.
    std::size_t hidden = 0;
    std::size_t final_norm = 0;
    std::size_t logits = 0;
    // Scratch.
    std::size_t normed = 0;      // [hidden]
    std::size_t projected = 0;   // [hidden]
    std::size_t mixed = 0;       // [channels], q, k and v
    std::size_t z = 0;           // [value width]
    std::size_t beta = 0;        // [v_heads]
    std::size_t alpha = 0;       // [v_heads]
    std::size_t mixer_out = 0;   // [value width], or [heads][head_dim]
    std::size_t q_and_gate = 0;  // [heads][2][head_dim]
    std::size_t q = 0;           // [heads][head_dim]
    std::size_t k = 0;           // [kv_heads][head_dim]
    std::size_t v = 0;
    std::size_t scores = 0;  // [heads][max_positions], or attention_scratch_floats() where those are more
    std::size_t act = 0;     // [intermediate]
    std::size_t up = 0;

    std::uint64_t bytes = 0;
};

}  // namespace kestrel::cpu
