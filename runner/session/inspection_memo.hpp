// What an inspection found out about an artifact and a model, so that the next session need not load and digest the same files again.
//
// A memo counts only while everything is the same that a load's result follows from (engine/abi.h, borrow.load): the artifact's bytes, its
// switches, the device, and the model's files. Files are not read again but looked at: path, size, modification and change time in
// nanoseconds, inode and file system. Why that is enough: whatever writes a file, replaces it or sets its times also sets its change time
// to the system's clock, which no ordinary call can set for a file; so a file with the same stamp was not touched, except within the
// clock's tick or the file system's resolution, at most 2 s. Therefore files that were touched less than 2 s before they are looked at are
// not trusted, as git does for its index. The stamps are taken before a load and again after it, and must agree. What remains: a clock that
// was set back, a process that holds a file mapped for writing all the while (its later writes may leave the times alone), and disks edited
// below the file system. `run --verify-weights` is for those who must exclude them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/platform/files.hpp"
#include "runner/record/record.hpp"

namespace kestrel::session {

// The files that a model consists of, as they were at one moment.
struct ModelFiles {
    struct Entry {
        std::string path;
        platform::FileStamp stamp;
        bool operator==(const Entry&) const = default;
    };
    std::vector<Entry> files;  // by path
    std::string problem;       // why no memo may rest on them; empty: it may
    bool operator==(const ModelFiles&) const = default;
};
// The file itself, or all files in a directory and below.
[[nodiscard]] ModelFiles look_at_model(const std::string& path);

struct MemoKey {
    std::string artifact;  // SHA-256
    std::vector<SwitchSetting> switches;
    std::string model;   // path
    std::string host;    // folders travel, on network file systems
    std::string device;  // as the engine names it
    ModelFiles files;
    // All but the files, whose memo is replaced when they change.
    [[nodiscard]] std::string identity() const;
};

struct InspectionMemo {
    std::string digest;
    std::string layout_id;
    std::uint64_t bytes = 0;
    std::string block_hash;  // weight_file.hpp: of the block that this artifact's own load made
    bool operator==(const InspectionMemo&) const = default;
};

[[nodiscard]] std::string memo_text(const MemoKey& key, const InspectionMemo& memo);
// Absent if the file is not there, is damaged, or is of other files.
[[nodiscard]] std::optional<InspectionMemo> read_memo(const std::string& path, const MemoKey& key);

}  // namespace kestrel::session
