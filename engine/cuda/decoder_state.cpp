// Reading, saving and restoring what a decoder holds.
#include <cstring>
#include <string>

#include "engine/cuda/decoder.hpp"
#include "engine/error.hpp"

namespace kestrel::cuda {

struct Decoder::SavedHeader {
    std::uint64_t magic = 0x314554415453474BULL;  // "KGSTATE1"
    std::uint64_t shape = 0;                      // of the model
    std::uint32_t max_positions = 0;
    std::uint32_t position = 0;
};

Decoder::SavedHeader Decoder::header() const {
    SavedHeader header;
    header.shape = shape_id_;
    header.max_positions = max_positions_;
    header.position = position_;
    return header;
}

void Decoder::read_output(std::size_t offset, std::span<float> out) const {
    if (!has_output_) bad_argument("no token was decoded since the model was opened, reset or restored");
    copy(out.data(), piece(offset), out.size_bytes(), cudaMemcpyDeviceToHost);
}

void Decoder::read_logits(std::span<float> out) const {
    read_output(layout_.logits, out);
}

void Decoder::read_hidden(std::span<float> out) const {
    read_output(layout_.hidden, out);
}

void Decoder::read_final_norm(std::span<float> out) const {
    read_output(layout_.final_norm, out);
}

void Decoder::read_gdn_state(std::uint32_t layer, std::span<float> out) const {
    copy(out.data(), gdn_step(layer).state, out.size_bytes(), cudaMemcpyDeviceToHost);
}

// The recurrent and convolution states lie together before the caches; of the caches, each head's rows up to the position count.
std::size_t Decoder::saved_bytes() const {
    return sizeof(SavedHeader) + (layout_.hidden - layout_.gdn_state) * sizeof(float);
}

// visit(offset in the workspace, floats in use) for each head of each cache, in their order in the workspace.
template <class Visit>
void Decoder::visit_cache(const Visit& visit) const {
    const std::size_t head_floats = std::size_t{max_positions_} * dims_.head_dim;
    const std::size_t used = std::size_t{position_} * dims_.head_dim;
    if (used == 0) return;
    for (const std::size_t cache : {layout_.key_cache, layout_.value_cache}) {
        for (std::uint32_t layer = 0; layer < dims_.attention_layers(); ++layer) {
            for (std::uint32_t h = 0; h < dims_.kv_heads; ++h) visit(cache + layer * layout_.cache_stride + h * head_floats, used);
        }
    }
}

void Decoder::save(std::span<std::byte> out) const {
    const SavedHeader saved = header();
    std::memcpy(out.data(), &saved, sizeof saved);
    std::byte* body = out.data() + sizeof saved;
    const std::size_t states = (layout_.key_cache - layout_.gdn_state) * sizeof(float);
    copy(body, piece(layout_.gdn_state), states, cudaMemcpyDeviceToHost);
    std::memset(body + states, 0, out.size() - sizeof saved - states);
    visit_cache([&](std::size_t offset, std::size_t used) {
        copy(body + (offset - layout_.gdn_state) * sizeof(float), piece(offset), used * sizeof(float), cudaMemcpyDeviceToHost);
    });
}

void Decoder::restore(std::span<const std::byte> in) {
    SavedHeader saved;
    SavedHeader expected = header();
    std::memcpy(&saved, in.data(), sizeof saved);
    expected.position = saved.position;
    if (std::memcmp(&saved, &expected, sizeof saved) != 0 || saved.position > max_positions_) {
        bad_argument("these bytes are not a saved state of this model and capacity");
    }
    const std::byte* body = in.data() + sizeof saved;
    copy(piece(layout_.gdn_state), body, (layout_.key_cache - layout_.gdn_state) * sizeof(float), cudaMemcpyHostToDevice);
    position_ = saved.position;
    has_output_ = false;
    visit_cache([&](std::size_t offset, std::size_t used) {
        copy(piece(offset), body + (offset - layout_.gdn_state) * sizeof(float), used * sizeof(float), cudaMemcpyHostToDevice);
    });
}

}  // namespace kestrel::cuda
