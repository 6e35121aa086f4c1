#include "engine/digest.hpp"

#include <bit>
#include <cstring>

namespace kestrel {

void BlockHash::add_block(const HashWords& block) {
    for (std::size_t i = 0; i < 4; ++i) {
        words_[i] = std::rotl((words_[i] ^ block[i]) * 0x9E3779B97F4A7C15ULL, 29) * 0xBF58476D1CE4E5B9ULL;
    }
}

void BlockHash::add_bytes(std::span<const std::byte> bytes) {
    begin_bytes(bytes.size());
    add_piece(bytes);
}

void BlockHash::add_piece(std::span<const std::byte> bytes) {
    HashWords block{};
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

HashWords BlockHash::words() const {
    HashWords w = words_;
    for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < 4; ++i) w[i] = mix(w[i] + w[(i + 1) % 4] * (2 * i + 3));
    }
    return w;
}

std::string BlockHash::hex() const {
    std::string text;
    for (const std::uint64_t word : words()) {
        for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(word >> shift) & 15U];
    }
    return text;
}

HashWords tensor_hash(std::string_view name, std::span<const std::uint64_t> shape, std::uint64_t elements,
                      std::span<const HashWords> chunks) {
    BlockHash hash;
    hash.add_text(name);
    hash.add_numbers(shape);
    hash.add_block({elements, 0, 0, 0});
    for (const HashWords& chunk : chunks) hash.add_block(chunk);
    return hash.words();
}

std::string digest_of_tensors(std::span<const HashWords> tensors) {
    BlockHash hash;
    hash.add_block({tensors.size(), 0, 0, 0});
    for (const HashWords& tensor : tensors) hash.add_block(tensor);
    return hash.hex();
}

}  // namespace kestrel
