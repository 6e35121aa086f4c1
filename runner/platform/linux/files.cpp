#include "runner/platform/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "runner/record/error.hpp"

namespace kestrel::platform {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
    throw Error(ExitCode::storage, what + " " + path + ": " + std::generic_category().message(error));
}

std::int64_t nanoseconds(const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

File File::open_to_read(const std::string& path) {
    File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), path, false);
    if (file.fd_ < 0) fail("cannot open", path, errno);
    struct stat info {};
    if (::fstat(file.fd_, &info) != 0) fail("cannot look at", path, errno);
    if (!S_ISREG(info.st_mode)) throw Error(ExitCode::storage, path + " is not a regular file");
    return file;
}

File File::create(const std::string& folder, const std::string& prefix) {
    std::string name = folder + "/" + prefix + "XXXXXX";
    const int fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) fail("cannot create a file in", folder, errno);
    return {fd, name, true};
}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, false)) {}

File::~File() {
    if (temporary_) ::unlink(path_.c_str());
    if (fd_ >= 0) ::close(fd_);
}

std::uint64_t File::size() const {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) fail("cannot look at", path_, errno);
    return static_cast<std::uint64_t>(info.st_size);
}

void File::read_at(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
        const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail("cannot read", path_, errno);
        if (got == 0) throw Error(ExitCode::storage, path_ + " ends at byte " + std::to_string(offset) + ", earlier than expected");
        out = out.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
}

void File::write_at(std::uint64_t offset, std::span<const std::byte> in) {
    while (!in.empty()) {
        const ssize_t put = ::pwrite(fd_, in.data(), in.size(), static_cast<off_t>(offset));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail("cannot write", path_, errno);
        in = in.subspan(static_cast<std::size_t>(put));
        offset += static_cast<std::uint64_t>(put);
    }
}

void File::reserve(std::uint64_t bytes) {
    // Not posix_fallocate: where the file system cannot, it would write every block instead.
    if (::fallocate(fd_, 0, 0, static_cast<off_t>(bytes)) == 0) return;
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) fail("cannot take the space for", path_, errno);
}

void File::sync() {
    if (::fsync(fd_) != 0) fail("cannot flush", path_, errno);
}

void File::mark_used() noexcept {
    (void)::futimens(fd_, nullptr);
}

void File::put_in_place(const std::string& path) {
    sync();
    if (::rename(path_.c_str(), path.c_str()) != 0) fail("cannot put a file in place as", path, errno);
    temporary_ = false;
    path_ = path;
    const std::string folder = std::filesystem::path(path).parent_path().string();
    const int fd = ::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    const bool flushed = fd >= 0 && ::fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (!flushed) fail("cannot flush the folder", folder, error);
}

std::optional<FileStamp> stamp_of(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return std::nullopt;
    struct stat info {};
    const bool known = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    ::close(fd);
    if (!known) return std::nullopt;
    return FileStamp{info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size), nanoseconds(info.st_mtim),
                     nanoseconds(info.st_ctim)};
}

std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds(now);
}

std::optional<FolderLock> FolderLock::try_lock(const std::string& folder) {
    const std::string path = folder + "/lock";
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) fail("cannot open", path, errno);
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return FolderLock(fd);
    const int error = errno;
    ::close(fd);
    if (error == EWOULDBLOCK) return std::nullopt;
    fail("cannot lock", path, error);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock::~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
}

void require_own_folder(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail("cannot make the folder", folder, errno);
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) fail("cannot look at the folder", folder, errno);
    if (!S_ISDIR(info.st_mode)) throw Error(ExitCode::storage, folder + " is not a folder");
    const uid_t me = ::geteuid();
    if (me != 0 && info.st_uid != me) throw Error(ExitCode::storage, folder + " belongs to another user, who could change what is in it");
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        throw Error(ExitCode::storage, "other users can write in " + folder + ": take that away with 'chmod go-w'");
    }
}

Space space_of(const std::string& folder) {
    struct statvfs info {};
    if (::statvfs(folder.c_str(), &info) != 0) fail("cannot see the free space of", folder, errno);
    return {std::uint64_t{info.f_bavail} * info.f_frsize, std::uint64_t{info.f_blocks} * info.f_frsize};
}

std::uint64_t largest_file() {
    rlimit limit{};
    const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited ? limit.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace kestrel::platform
