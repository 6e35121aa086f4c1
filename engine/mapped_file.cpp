#include "engine/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/error.hpp"

namespace kestrel {

MappedFile::MappedFile(const std::filesystem::path& path) {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) bad_model(path.string() + ": cannot be opened (" + std::strerror(errno) + ")");
    struct stat info {};
    const bool known = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if (known && info.st_size > 0) {
        size_ = static_cast<std::size_t>(info.st_size);
        void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED) data_ = static_cast<const std::byte*>(at);
    }
    ::close(fd);
    if (data_ == nullptr) bad_model(path.string() + ": is empty, not a regular file, or cannot be mapped");
}

MappedFile::MappedFile(MappedFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace kestrel
