#include "runner/session/weight_file.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "runner/record/error.hpp"
#include "runner/session/parallel.hpp"

namespace kestrel::session {
namespace {

// Fits the cache of today's processors beside other threads' chunks badly, but makes a transfer to a device long enough to be fast.
constexpr std::uint64_t chunk_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint32_t format_version = 1;
constexpr std::array<char, 16> magic{'k', 'e', 's', 't', 'r', 'e', 'l', ' ', 'w', 'e', 'i', 'g', 'h', 't', 's', '\n'};

using Sum = std::array<std::uint64_t, 2>;

struct Fields {
    std::array<char, 16> magic;
    std::uint32_t version;
    std::uint32_t header_bytes;
    std::uint64_t block_bytes;
    std::uint64_t chunk_bytes;
    std::uint64_t chunks;
    std::array<char, 64> digest;
    std::array<char, 64> layout_id;
};
static_assert(sizeof(Fields) == 176, "the header has no gaps");

[[noreturn]] void damaged(const std::string& name, const std::string& what) {
    throw Error(ExitCode::storage, name + ": " + what);
}

Sum sum_of(std::span<const std::byte> bytes) {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    return {hash.low64, hash.high64};
}

std::string hash_of_sums(std::span<const Sum> sums) {
    std::string text;
    for (const std::uint64_t word : sum_of(std::as_bytes(sums))) {
        for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(word >> shift) & 15U];
    }
    return text;
}

std::uint64_t chunks_of(std::uint64_t block_bytes) {
    return (block_bytes + chunk_bytes - 1) / chunk_bytes;
}

std::uint64_t header_bytes_of(std::uint64_t block_bytes) {
    const std::uint64_t used = sizeof(Fields) + (chunks_of(block_bytes) + 1) * sizeof(Sum);
    return (used + page_bytes - 1) / page_bytes * page_bytes;
}

struct Chunk {
    std::uint64_t offset;
    std::size_t bytes;
};

Chunk chunk_at(std::uint64_t block_bytes, std::size_t index) {
    const std::uint64_t offset = index * chunk_bytes;
    return {offset, static_cast<std::size_t>(std::min(chunk_bytes, block_bytes - offset))};
}

// A buffer of one chunk for each worker, made when it is first used.
class Buffers {
  public:
    Buffers(const WeightBlock* block, int threads) : block_(block), buffers_(static_cast<std::size_t>(std::max(threads, 1))) {}
    [[nodiscard]] std::span<std::byte> of(std::size_t worker, std::size_t bytes) {
        std::shared_ptr<std::byte>& buffer = buffers_.at(worker);
        if (!buffer && block_ != nullptr && block_->staging) buffer = block_->staging(chunk_bytes);
        if (!buffer) buffer = std::shared_ptr<std::byte>(new std::byte[chunk_bytes], std::default_delete<std::byte[]>());
        return {buffer.get(), bytes};
    }

  private:
    const WeightBlock* block_;
    std::vector<std::shared_ptr<std::byte>> buffers_;
};

// Calls body(index, chunk, bytes of it) for each chunk of a block.
void for_each_chunk(const WeightBlock& block, const BlockWork& work,
                    const std::function<void(std::size_t index, const Chunk& chunk, std::span<const std::byte> bytes)>& body) {
    Buffers buffers(&block, work.threads);
    for_each_parallel(chunks_of(block.bytes), work.threads, [&](std::size_t index, std::size_t worker) {
        const Chunk chunk = chunk_at(block.bytes, index);
        if (block.host != nullptr) {
            body(index, chunk, {block.host + chunk.offset, chunk.bytes});
        } else {
            const std::span<std::byte> buffer = buffers.of(worker, chunk.bytes);
            block.get(chunk.offset, buffer);
            body(index, chunk, buffer);
        }
        if (worker == 0 && work.alive) work.alive();
    });
}

std::array<char, 64> padded(const std::string& text, const char* what) {
    std::array<char, 64> out{};
    if (text.size() > out.size()) throw Error(ExitCode::storage, std::string(what) + " " + text + " is longer than 64 characters");
    std::copy(text.begin(), text.end(), out.begin());
    return out;
}

std::vector<std::byte> header_of(const WeightKey& key, std::span<const Sum> sums) {
    std::vector<std::byte> header(header_bytes_of(key.bytes));
    const Fields fields{magic,       format_version, static_cast<std::uint32_t>(header.size()), key.bytes,
                        chunk_bytes, sums.size(),    padded(key.digest, "the digest"),          padded(key.layout_id, "the layout id")};
    std::memcpy(header.data(), &fields, sizeof fields);
    std::memcpy(header.data() + sizeof fields, sums.data(), sums.size_bytes());
    const Sum own = sum_of(std::span(header).first(header.size() - sizeof(Sum)));
    std::memcpy(header.data() + header.size() - sizeof own, own.data(), sizeof own);
    return header;
}

// The chunks' checksums. The whole header follows from them and the key, so nothing in it has to be believed: not even its own size.
std::vector<Sum> read_sums(const platform::File& file, const std::string& name, const WeightKey& key) {
    const std::uint64_t expected = weight_file_bytes(key.bytes);
    const std::uint64_t found = file.size();
    if (found != expected) {
        damaged(name,
                "has " + std::to_string(found) + " bytes instead of " + std::to_string(expected) + "; it is cut off or not of this block");
    }
    std::vector<std::byte> header(header_bytes_of(key.bytes));
    file.read_at(0, header);
    std::vector<Sum> sums(chunks_of(key.bytes));
    std::memcpy(sums.data(), header.data() + sizeof(Fields), sums.size() * sizeof(Sum));
    if (header != header_of(key, sums)) damaged(name, "its header is damaged, of another version or of another block");
    return sums;
}

}  // namespace

std::string hash_of_block(const WeightBlock& block, const BlockWork& work) {
    std::vector<Sum> sums(chunks_of(block.bytes));
    for_each_chunk(block, work, [&](std::size_t index, const Chunk&, std::span<const std::byte> bytes) { sums[index] = sum_of(bytes); });
    return hash_of_sums(sums);
}

std::uint64_t weight_file_bytes(std::uint64_t block_bytes) {
    return header_bytes_of(block_bytes) + block_bytes;
}

std::string read_weight_header(const platform::File& file, const std::string& name, const WeightKey& key) {
    return hash_of_sums(read_sums(file, name, key));
}

void read_weight_file(const platform::File& file, const std::string& name, const WeightKey& key, const std::string& block_hash,
                      const WeightBlock* block, const BlockWork& work) {
    const std::vector<Sum> sums = read_sums(file, name, key);
    if (hash_of_sums(sums) != block_hash) damaged(name, "holds the same weights in other bytes than this session's engines made of them");
    const std::uint64_t start = header_bytes_of(key.bytes);
    Buffers buffers(block, work.threads);
    for_each_parallel(sums.size(), work.threads, [&](std::size_t index, std::size_t worker) {
        const Chunk chunk = chunk_at(key.bytes, index);
        const bool direct = block != nullptr && block->host != nullptr;
        const std::span<std::byte> bytes = direct ? std::span(block->host + chunk.offset, chunk.bytes) : buffers.of(worker, chunk.bytes);
        file.read_at(start + chunk.offset, bytes);
        // Of what was read, where it will be used: a file that changes meanwhile cannot pass.
        if (sum_of(bytes) != sums[index]) damaged(name, "bytes " + std::to_string(start + chunk.offset) + " and following are damaged");
        if (block != nullptr && !direct) block->put(chunk.offset, bytes);
        if (worker == 0 && work.alive) work.alive();
    });
}

void write_weight_file(platform::File& file, const std::string& name, const WeightKey& key, const std::string& block_hash,
                       const WeightBlock& block, const BlockWork& work) {
    const std::uint64_t start = header_bytes_of(key.bytes);
    file.reserve(weight_file_bytes(key.bytes));
    std::vector<Sum> sums(chunks_of(key.bytes));
    for_each_chunk(block, work, [&](std::size_t index, const Chunk& chunk, std::span<const std::byte> bytes) {
        sums[index] = sum_of(bytes);
        file.write_at(start + chunk.offset, bytes);
    });
    if (hash_of_sums(sums) != block_hash) damaged(name, "not written: the loaded block has other bytes than when it was inspected");
    file.write_at(0, header_of(key, sums));
    file.sync();
    read_weight_file(file, name, key, block_hash, nullptr, work);
}

}  // namespace kestrel::session
