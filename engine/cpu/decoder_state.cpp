// Reading, saving and restoring what a decoder holds.
#include <algorithm>
#include <cstring>
#include <string>

#include "engine/cpu/decoder.hpp"
#include "engine/error.hpp"

namespace kestrel::cpu {

struct Decoder::SavedHeader {
    std::uint64_t magic = 0x314554415453424BULL;  // "KBSTATE1"
    std::uint64_t shape = 0;                      // of the model
    std::uint32_t max_positions = 0;
    std::uint32_t position = 0;
};

Decoder::SavedHeader Decoder::header() const {
    SavedHeader header;
    header.shape = shape_id_;
    header.max_positions = options_.max_positions;
    header.position = position_;
    return header;
}

std::span<const float> Decoder::output(std::size_t offset, std::size_t count) const {
    if (!has_output_) bad_argument("no token was decoded since the model was opened, reset or restored");
    return {piece(offset), count};
}

std::span<const float> Decoder::gdn_state(std::uint32_t layer) const {
    if (layer >= dims_.layers()) {
        bad_argument("layer " + std::to_string(layer) + " of a model of " + std::to_string(dims_.layers()));
    }
    if (dims_.full_attention[layer]) {
        fail(KESTREL_UNSUPPORTED, "layer " + std::to_string(layer) + " attends fully and has no recurrent state");
    }
    return {piece(layout_.gdn_state) + number_in_kind_[layer] * layout_.gdn_state_stride, dims_.state_elements()};
}

// The recurrent and convolution states lie together before the caches; of the caches, each head's rows up to the position count.
std::size_t Decoder::saved_bytes() const {
    const std::size_t floats = layout_.hidden - layout_.gdn_state;
    return sizeof(SavedHeader) + floats * sizeof(float);
}

// visit(offset in the workspace, floats in use) for each head of each cache, in their order in the workspace.
template <class Visit>
void Decoder::visit_cache(const Visit& visit) const {
    const std::size_t head_floats = std::size_t{options_.max_positions} * dims_.head_dim;
    const std::size_t used = std::size_t{position_} * dims_.head_dim;
    for (const std::size_t cache : {layout_.key_cache, layout_.value_cache}) {
        for (std::uint32_t layer = 0; layer < dims_.attention_layers(); ++layer) {
            for (std::uint32_t h = 0; h < dims_.kv_heads; ++h) {
                visit(cache + layer * layout_.cache_stride + h * head_floats, used);
            }
        }
    }
}

void Decoder::save(std::span<std::byte> out) const {
    const SavedHeader saved = header();
    std::memcpy(out.data(), &saved, sizeof saved);
    std::byte* body = out.data() + sizeof saved;
    const std::size_t states = (layout_.key_cache - layout_.gdn_state) * sizeof(float);
    std::memcpy(body, piece(layout_.gdn_state), states);
    std::memset(body + states, 0, out.size() - sizeof saved - states);
    visit_cache([&](std::size_t offset, std::size_t used) {
        std::memcpy(body + (offset - layout_.gdn_state) * sizeof(float), piece(offset), used * sizeof(float));
    });
}

void Decoder::restore(std::span<const std::byte> in) {
    SavedHeader saved;
    SavedHeader expected = header();
    std::memcpy(&saved, in.data(), sizeof saved);
    expected.position = saved.position;
    if (std::memcmp(&saved, &expected, sizeof saved) != 0 || saved.position > options_.max_positions) {
        bad_argument("these bytes are not a saved state of this model and capacity");
    }
    const std::byte* body = in.data() + sizeof saved;
    std::memcpy(piece(layout_.gdn_state), body, (layout_.key_cache - layout_.gdn_state) * sizeof(float));
    position_ = saved.position;
    has_output_ = false;
    visit_cache([&](std::size_t offset, std::size_t used) {
        std::memcpy(piece(offset), body + (offset - layout_.gdn_state) * sizeof(float), used * sizeof(float));
    });
}

}  // namespace kestrel::cpu
