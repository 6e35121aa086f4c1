// One lent weights block as a file.
//
// Layout, little-endian: a header of whole pages, then the block's bytes as they lay in memory, nothing else.
//   16 bytes  magic
//   u32       format version, 1
//   u32       bytes of the header
//   u64       bytes of the block
//   u64       bytes of a chunk, 2^23; the last one is what is left
//   u64       number of chunks
//   64 bytes  canonical digest of the weights (engine/abi.h), hexadecimal
//   64 bytes  layout id, padded with zero bytes
//   16 bytes  for each chunk: its XXH3-128, low word first
//   zero bytes up to the header's last 16, which are the XXH3-128 of the header before them
// The hash of a block is the XXH3-128 of the chunks' checksums in order, 32 hexadecimal digits: it names the very bytes, where the digest
// names the values they stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runner/platform/files.hpp"

namespace kestrel::session {

// What a block holds, and how.
struct WeightKey {
    std::string digest;
    std::string layout_id;
    std::uint64_t bytes = 0;
    bool operator==(const WeightKey&) const = default;
};

// A block in memory that its engine owns the meaning of.
struct WeightBlock {
    std::uint64_t bytes = 0;
    std::byte* host = nullptr;  // null: reached through the functions below alone, which several threads call at once
    std::function<void(std::uint64_t offset, std::span<const std::byte> from)> put;
    std::function<void(std::uint64_t offset, std::span<std::byte> to)> get;
    std::function<std::shared_ptr<std::byte>(std::size_t bytes)> staging;  // memory that they copy from and to fast
};

// How a block is worked on: with this many threads, and a sign of life, on the calling thread, after each of the chunks that it does
// itself.
struct BlockWork {
    int threads = 1;
    std::function<void()> alive;
};

// Throws Error if the block cannot be read.
[[nodiscard]] std::string hash_of_block(const WeightBlock& block, const BlockWork& work);

// The block's hash as the header says; throws Error(storage) saying what is wrong if the file is not a whole one of this key. The block's
// own bytes are not read.
[[nodiscard]] std::string read_weight_header(const platform::File& file, const std::string& name, const WeightKey& key);

// Reads and checks every byte, into `block` or, with none, to nowhere. Throws Error(storage) saying what is wrong; the block then holds
// anything. A block that is only reached through functions receives nothing that was not checked.
void read_weight_file(const platform::File& file, const std::string& name, const WeightKey& key, const std::string& block_hash,
                      const WeightBlock* block, const BlockWork& work);

// Bytes that the file of a block has.
[[nodiscard]] std::uint64_t weight_file_bytes(std::uint64_t block_bytes);

// Fills a new file and reads it back. Throws Error(storage) if it cannot be written, or if the block's hash is another one.
void write_weight_file(platform::File& file, const std::string& name, const WeightKey& key, const std::string& block_hash,
                       const WeightBlock& block, const BlockWork& work);

}  // namespace kestrel::session
