// Digest of named f32 tensors, equal for every engine and layout that holds the same values. Finds mistakes, not attackers.
//
// Definition, so that another engine can compute it. Four 64-bit words, w[i] = mix(i + 1), take 32-byte blocks:
// w[i] = rotl((w[i] ^ word i of the block) * 0x9E3779B97F4A7C15, 29) * 0xBF58476D1CE4E5B9, words little-endian. A tensor adds
// its name, then its shape as 64-bit numbers, then its values; each of the three is preceded by its length in bytes as one
// block (length, 0, 0, 0) and padded with zero bytes to whole blocks. At the end w[i] = mix(w[i] + w[(i+1)%4] * (2i + 3)), one
// i after the other, twice over; the digest is w[0..3], 16 hexadecimal digits each. mix is the finaliser of splitmix64.
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

class TensorDigest {
  public:
    void add(std::string_view name, std::span<const std::uint64_t> shape, std::span<const float> values);
    // The same in pieces: `elements` values in all, every piece but the last a multiple of 8.
    void begin(std::string_view name, std::span<const std::uint64_t> shape, std::uint64_t elements);
    void add_values(std::span<const float> values) { add_blocks(std::as_bytes(values)); }
    [[nodiscard]] std::array<std::uint64_t, 4> words() const;
    [[nodiscard]] std::string hex() const;  // the words, 64 digits

  private:
    void add_bytes(std::span<const std::byte> bytes);   // length and content
    void add_blocks(std::span<const std::byte> bytes);  // content, padded
    void add_block(const std::array<std::uint64_t, 4>& block);
    std::array<std::uint64_t, 4> words_{mix(1), mix(2), mix(3), mix(4)};
};

}  // namespace kestrel
