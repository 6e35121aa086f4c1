#include "runner/platform/lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "runner/record/error.hpp"

namespace kestrel::platform {
namespace {

// The lock must be the same file for every user and database of the machine. /run/lock is world-writable on Debian; minimal systems may
// lack it.
std::string lock_directory() {
    return ::access("/run/lock", W_OK) == 0 ? "/run/lock" : "/tmp";
}

// Opens the file, made if need be, at a descriptor above those that a worker gets its own things at: the low ones are overwritten there.
// An existing file is opened without O_CREAT, because with fs.protected_regular the kernel refuses that flag on another user's file.
int open_lock_file(const std::string& path) {
    constexpr int first_free_descriptor = 10;
    int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        const mode_t old_mask = ::umask(0);
        fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        ::umask(old_mask);
        if (fd < 0 && errno == EEXIST) fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0) return fd;
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, first_free_descriptor);
    ::close(fd);
    return moved;
}

}  // namespace

DeviceLock::DeviceLock(const std::string& device) : path_(lock_directory() + "/kestrel-ab-" + device + ".lock") {
    fd_ = open_lock_file(path_);
    if (fd_ < 0) {
        throw Error(ExitCode::invalid, "cannot open the device lock " + path_ + ": " + std::strerror(errno));
    }
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
        std::array<char, 64> holder{};
        const ssize_t n = ::pread(fd_, holder.data(), holder.size() - 1, 0);
        std::string who = n > 0 ? std::string(holder.data(), static_cast<std::size_t>(n)) : "unknown";
        ::close(fd_);
        fd_ = -1;
        throw Error(ExitCode::invalid, "another runner uses device '" + device + "' (process " + who + ", lock " + path_ +
                                           "); two measurements at once would spoil both: wait for it or stop it");
    }
    const std::string me = std::to_string(::getpid());
    if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, me.data(), me.size(), 0) < 0) {
        // Only the message of a second runner would miss the number.
    }
}

DeviceLock::~DeviceLock() {
    if (fd_ >= 0) ::close(fd_);
}

}  // namespace kestrel::platform
