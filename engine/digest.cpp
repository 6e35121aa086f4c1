#include "engine/digest.hpp"

#include <bit>
#include <cstring>

namespace kestrel {

void TensorDigest::add_block(const std::array<std::uint64_t, 4>& block) {
    for (std::size_t i = 0; i < 4; ++i) {
        words_[i] = std::rotl((words_[i] ^ block[i]) * 0x9E3779B97F4A7C15ULL, 29) * 0xBF58476D1CE4E5B9ULL;
    }
}

void TensorDigest::add_bytes(std::span<const std::byte> bytes) {
    add_block({bytes.size(), 0, 0, 0});
    add_blocks(bytes);
}

void TensorDigest::add_blocks(std::span<const std::byte> bytes) {
    std::array<std::uint64_t, 4> block{};
    std::size_t at = 0;
    for (; at + sizeof block <= bytes.size(); at += sizeof block) {
        std::memcpy(block.data(), bytes.data() + at, sizeof block);
        add_block(block);
    }
    if (at < bytes.size()) {
        block = {};
        std::memcpy(block.data(), bytes.data() + at, bytes.size() - at);
        add_block(block);
    }
}

void TensorDigest::add(std::string_view name, std::span<const std::uint64_t> shape, std::span<const float> values) {
    begin(name, shape, values.size());
    add_values(values);
}

void TensorDigest::begin(std::string_view name, std::span<const std::uint64_t> shape, std::uint64_t elements) {
    add_bytes(std::as_bytes(std::span(name)));
    add_bytes(std::as_bytes(shape));
    add_block({elements * sizeof(float), 0, 0, 0});
}

std::array<std::uint64_t, 4> TensorDigest::words() const {
    std::array<std::uint64_t, 4> w = words_;
    for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < 4; ++i) w[i] = mix(w[i] + w[(i + 1) % 4] * (2 * i + 3));
    }
    return w;
}

std::string TensorDigest::hex() const {
    std::string text;
    for (const std::uint64_t word : words()) {
        for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(word >> shift) & 15U];
    }
    return text;
}

}  // namespace kestrel
