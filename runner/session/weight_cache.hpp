// Weights blocks as engines left them in lent memory, quantised and arranged, kept from one process to the next so that a replicate need
// not make them again. Knows no engine: a block is bytes, and what they mean is in its key.
//
// A folder holds <name>.weights files (weight_file.hpp), <name>.memo files (inspection_memo.hpp) and a lock that writers hold. A file comes
// into being under another name and is renamed when every byte of it is written, flushed and read back, so whatever has a right name
// was once whole; and it is checked again whenever it is read. Nothing here fails a session: each function says in words why it did not do
// what was asked, and the caller loads the model instead.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runner/session/inspection_memo.hpp"
#include "runner/session/weight_file.hpp"

namespace kestrel::session {

// The kind of event that says why a worker could not use the cache of weights; the kind "weights" says where they came from.
inline constexpr const char* no_cache_event = "no weight cache";

struct CacheSettings {
    std::string folder;                               // absolute; empty: no cache
    std::uint64_t limit = std::uint64_t{64} << 30;    // bytes of all blocks together; the least recently used go first, 0: no cache
    std::uint64_t minimum = std::uint64_t{64} << 20;  // smaller blocks are not kept: loading them is as quick
    bool verify = false;                              // inspection loads and digests even where nothing changed
    bool operator==(const CacheSettings&) const = default;
};

class WeightCache {
  public:
    explicit WeightCache(CacheSettings settings, BlockWork work = {}) : settings_(std::move(settings)), work_(std::move(work)) {}

    // Whether blocks of this size are kept.
    [[nodiscard]] bool serves(std::uint64_t bytes) const {
        return !settings_.folder.empty() && settings_.limit > 0 && bytes >= settings_.minimum;
    }

    // Fills `block` from the file of `key` if every byte is as `block_hash` (weight_file.hpp) says. Otherwise the reason, with the block
    // holding anything.
    [[nodiscard]] std::optional<std::string> read(const WeightKey& key, const std::string& block_hash, const WeightBlock& block) const;

    // Whether there is a file for it, by its header alone.
    [[nodiscard]] bool holds(const WeightKey& key, const std::string& block_hash) const;

    // Keeps a block, in place of whatever file its key had, unless that one holds the block by its header and `replace` is not asked for;
    // makes room for it. Otherwise the reason.
    [[nodiscard]] std::optional<std::string> store(const WeightKey& key, const std::string& block_hash, const WeightBlock& block,
                                                   bool replace = false) const;

    [[nodiscard]] std::optional<InspectionMemo> find(const MemoKey& key) const;
    [[nodiscard]] std::optional<std::string> store(const MemoKey& key, const InspectionMemo& memo) const;

    // Of a block loaded by its engine.
    [[nodiscard]] std::string hash(const WeightBlock& block) const { return hash_of_block(block, work_); }

    [[nodiscard]] std::string path_of(const WeightKey& key) const;

  private:
    void make_room(std::uint64_t bytes, const std::string& keep) const;

    CacheSettings settings_;
    BlockWork work_;
};

struct CacheUsage {
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
    std::string problem;  // why the folder cannot be used; empty: it can
};
[[nodiscard]] CacheUsage usage_of(const CacheSettings& settings);

// Space on the file system that the cache leaves free: a twentieth, at most 8 GiB.
[[nodiscard]] std::uint64_t reserve_of(const platform::Space& space);

}  // namespace kestrel::session
