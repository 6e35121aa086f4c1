// Files whose content must be right or absent: read and written at offsets, made under another name and then put in place. Nothing is
// mapped, because a mapped file that somebody shortens ends the process that reads it. Functions throw Error(storage) naming the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kestrel::platform {

// An open regular file. Reading and writing at offsets may be done by several threads at once.
class File {
  public:
    // Neither follows a symbolic link nor waits for a pipe's writer.
    [[nodiscard]] static File open_to_read(const std::string& path);
    // A new file in `folder` for this process alone, its name beginning with `prefix`; removed on destruction unless put in place.
    [[nodiscard]] static File create(const std::string& folder, const std::string& prefix);
    File(File&& other) noexcept;
    File& operator=(File&&) = delete;
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File();

    [[nodiscard]] std::uint64_t size() const;
    void read_at(std::uint64_t offset, std::span<std::byte> out) const;  // all of it; the file's end is an error
    void write_at(std::uint64_t offset, std::span<const std::byte> in);
    // Takes the space now, where the file system can, so that a full one is noticed before anything is written.
    void reserve(std::uint64_t bytes);
    void sync();
    void mark_used() noexcept;  // sets the modification time to now
    // Durable under `path`, whatever file was there.
    void put_in_place(const std::string& path);

  private:
    File(int fd, std::string path, bool temporary) : fd_(fd), path_(std::move(path)), temporary_(temporary) {}
    int fd_;
    std::string path_;
    bool temporary_;
};

// What tells whether a file is the one that was seen before.
struct FileStamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;  // of content or attributes: the system's own clock, not settable for a single file
    bool operator==(const FileStamp&) const = default;
};
// Of an opened file: network file systems ask their server when a file is opened, not when its name is looked at. Absent if it is not a
// regular file or cannot be read.
[[nodiscard]] std::optional<FileStamp> stamp_of(const std::string& path);
[[nodiscard]] std::int64_t now_ns();  // the clock of file times

// Held by at most one process; freed by the system when that process ends, however it ends.
class FolderLock {
  public:
    [[nodiscard]] static std::optional<FolderLock> try_lock(const std::string& folder);  // absent: somebody else holds it
    FolderLock(FolderLock&& other) noexcept;
    FolderLock& operator=(FolderLock&&) = delete;
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;
    ~FolderLock();

  private:
    explicit FolderLock(int fd) : fd_(fd) {}
    int fd_;
};

// Makes it, for this user alone, if it is not there; throws if it cannot be made or if others than this user could write in it.
void require_own_folder(const std::string& folder);

struct Space {
    std::uint64_t free = 0;  // for this user
    std::uint64_t total = 0;
};
[[nodiscard]] Space space_of(const std::string& folder);

// The largest file that this process may write.
[[nodiscard]] std::uint64_t largest_file();

}  // namespace kestrel::platform
