// What a decoder keeps between tokens: its place, reset, save and restore.
#include <algorithm>
#include <cstring>
#include <string>

#include "engine/error.hpp"
#include "engine/truth/decoder.hpp"

namespace kestrel::truth {

SequenceLayout::SequenceLayout(const ModelDims& d, std::uint32_t max_positions) {
    for (std::uint32_t layer = 0; layer < d.layers(); ++layer) {
        if (d.full_attention[layer]) {
            first_.push_back(take(std::uint64_t{d.kv_heads} * d.head_dim, max_positions));
            second_.push_back(take(std::uint64_t{d.kv_heads} * d.head_dim, max_positions));
        } else {
            first_.push_back(take(d.state_elements(), 1));
            second_.push_back(take(d.conv_channels(), d.conv_taps - 1));
        }
    }
}

SequenceLayout::Piece SequenceLayout::take(std::uint64_t doubles, std::uint64_t times) {
    const Piece piece{doubles_, doubles * times};
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(doubles, times, &doubles) || __builtin_add_overflow(doubles_, doubles, &doubles_) ||
        __builtin_mul_overflow(doubles_, sizeof(double), &bytes)) {
        fail(KESTREL_OUT_OF_MEMORY, "a key/value cache of " + std::to_string(times) + " positions does not fit any memory; use fewer");
    }
    return piece;
}

struct Decoder::SavedHeader {
    std::uint64_t magic = 0x314854555254424BULL;  // "KBTRUTH1"
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

void Decoder::reset() {
    std::fill_n(sequence_, layout_.bytes() / sizeof(double), 0.0);
    position_ = 0;
    logits_.clear();
}

void Decoder::read(const Vector& from, std::span<float> to) const {
    if (logits_.empty()) bad_argument("no token was decoded since the model was opened, reset or restored");
    std::transform(from.begin(), from.end(), to.begin(), [](double value) { return static_cast<float>(value); });
}

void Decoder::read_gdn_state(std::uint32_t layer, std::span<float> out) const {
    const double* state = sequence_ + layout_.state(layer).offset;
    std::transform(state, state + out.size(), out.begin(), [](double value) { return static_cast<float>(value); });
}

std::size_t Decoder::saved_bytes() const {
    return sizeof(SavedHeader) + layout_.bytes();
}

void Decoder::save(std::span<std::byte> out) const {
    const SavedHeader saved = header();
    std::memcpy(out.data(), &saved, sizeof saved);
    std::memcpy(out.data() + sizeof saved, sequence_, layout_.bytes());
}

void Decoder::restore(std::span<const std::byte> in) {
    SavedHeader saved;
    SavedHeader expected = header();
    std::memcpy(&saved, in.data(), sizeof saved);
    expected.position = saved.position;
    if (std::memcmp(&saved, &expected, sizeof saved) != 0 || saved.position > max_positions_) {
        bad_argument("these bytes are not a saved state of this model and capacity");
    }
    std::memcpy(sequence_, in.data() + sizeof saved, layout_.bytes());
    position_ = saved.position;
    logits_.clear();
}

}  // namespace kestrel::truth
