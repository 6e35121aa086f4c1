#include "runner/identity/file_copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/identity/sha256.hpp"
#include "runner/record/error.hpp"

namespace kestrel {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t piece_bytes = 1U << 20U;
constexpr mode_t read_only = 0444;  // an overwritten library that is mapped crashes the worker that runs it

[[noreturn]] void fail(ExitCode code, const std::string& what, const fs::path& path, int error) {
    throw Error(code, what + " " + path.string() + ": " + std::generic_category().message(error));
}

class Descriptor {
  public:
    explicit Descriptor(int value) : value_(value) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (value_ >= 0) ::close(value_);
    }
    [[nodiscard]] int get() const { return value_; }
    [[nodiscard]] int release() { return std::exchange(value_, -1); }

  private:
    int value_;
};

std::size_t read_piece(int descriptor, std::vector<char>& piece, const fs::path& path) {
    for (;;) {
        const ssize_t got = ::read(descriptor, piece.data(), piece.size());
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno != EINTR) fail(ExitCode::usage, "cannot read", path, errno);
    }
}

void write_all(int descriptor, std::string_view bytes, const fs::path& path) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
        if (put < 0 && errno != EINTR) fail(ExitCode::storage, "cannot write", path, errno);
        if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    }
}

Descriptor open_regular_file(const fs::path& path) {
    // Not blocking, so that a pipe in a library's place is refused instead of waited for.
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) fail(ExitCode::usage, "cannot read", path, errno);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) fail(ExitCode::usage, "cannot read", path, errno);
    if (!S_ISREG(status.st_mode)) throw Error(ExitCode::usage, path.string() + " is not a regular file");
    return Descriptor(file.release());
}

// A rename is durable only once the folder is.
void flush_folder(const fs::path& folder) {
    const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
    if (descriptor.get() < 0 || ::fsync(descriptor.get()) != 0) fail(ExitCode::storage, "cannot flush the folder", folder, errno);
}

}  // namespace

UnpublishedCopy::UnpublishedCopy(const fs::path& from, const fs::path& folder) {
    const Descriptor source = open_regular_file(from);
    std::string name = (folder / ".incoming-XXXXXX").string();
    const Descriptor target(::mkostemp(name.data(), O_CLOEXEC));
    if (target.get() < 0) fail(ExitCode::storage, "cannot create a file in", folder, errno);
    path_ = name;
    try {
        Sha256 digest;
        std::vector<char> piece(piece_bytes);
        while (const std::size_t got = read_piece(source.get(), piece, from)) {
            digest.update({piece.data(), got});
            write_all(target.get(), {piece.data(), got}, path_);
            bytes_ += static_cast<std::int64_t>(got);
        }
        if (::fchmod(target.get(), read_only) != 0 || ::fsync(target.get()) != 0) fail(ExitCode::storage, "cannot flush", path_, errno);
        sha256_ = digest.finish_hex();
    } catch (...) {
        ::unlink(path_.c_str());  // no destructor runs for a constructor that throws
        throw;
    }
}

UnpublishedCopy::~UnpublishedCopy() {
    if (!published_) ::unlink(path_.c_str());
}

void UnpublishedCopy::publish(const fs::path& name) {
    if (::rename(path_.c_str(), name.c_str()) != 0) fail(ExitCode::storage, "cannot put a copy in place as", name, errno);
    published_ = true;
    flush_folder(name.parent_path());
}

}  // namespace kestrel
