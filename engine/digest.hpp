// Digest of named f32 tensors, equal for every engine and layout that holds the same values, and for any number of threads. Finds
// mistakes, not attackers.
//
// Definition, so that another engine can compute it. A hash is four 64-bit words, w[i] = mix(i + 1), that take 32-byte blocks:
// w[i] = rotl((w[i] ^ word i of the block) * 0x9E3779B97F4A7C15, 29) * 0xBF58476D1CE4E5B9, words little-endian. "Bytes" are preceded by
// their length as one block (length, 0, 0, 0) and padded with zero bytes to whole blocks. At the end w[i] = mix(w[i] + w[(i+1)%4] *
// (2i + 3)), one i after the other, twice over. mix is the finaliser of splitmix64.
// - A chunk is 2^20 consecutive values of a tensor in row-major order, the last one what is left; its hash takes them as bytes.
// - A tensor's hash takes its name as bytes, its shape as bytes (64-bit numbers), one block (number of values, 0, 0, 0), and then the
//   hash of each chunk, in order, as one block.
// - The digest is a hash that takes one block (number of tensors, 0, 0, 0) and then the hash of each tensor, in canonical order, as one
//   block; it is written as w[0..3], 16 hexadecimal digits each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kestrel {

// The finaliser of splitmix64: a fixed bijection of 64-bit words.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

using HashWords = std::array<std::uint64_t, 4>;

class BlockHash {
  public:
    void add_block(const HashWords& block);
    void add_bytes(std::span<const std::byte> bytes);  // length and content
    void add_text(std::string_view text) { add_bytes(std::as_bytes(std::span(text))); }
    void add_numbers(std::span<const std::uint64_t> numbers) { add_bytes(std::as_bytes(numbers)); }
    // Bytes in pieces: `bytes` in all, every piece but the last a multiple of 32.
    void begin_bytes(std::uint64_t bytes) { add_block({bytes, 0, 0, 0}); }
    void add_piece(std::span<const std::byte> bytes);
    [[nodiscard]] HashWords words() const;
    [[nodiscard]] std::string hex() const;  // the words, 64 digits

  private:
    HashWords words_{mix(1), mix(2), mix(3), mix(4)};
};

inline constexpr std::uint64_t chunk_elements = std::uint64_t{1} << 20;

[[nodiscard]] constexpr std::uint64_t chunks_of(std::uint64_t elements) noexcept {
    return (elements + chunk_elements - 1) / chunk_elements;
}

// From the hashes of its chunks.
[[nodiscard]] HashWords tensor_hash(std::string_view name, std::span<const std::uint64_t> shape, std::uint64_t elements,
                                    std::span<const HashWords> chunks);
// From the hashes of all tensors.
[[nodiscard]] std::string digest_of_tensors(std::span<const HashWords> tensors);

}  // namespace kestrel
