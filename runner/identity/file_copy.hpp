// Copies that are complete or not there at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace kestrel {

// A copy under a temporary name in the folder it is meant for, durable and read-only; deleted unless published.
class UnpublishedCopy {
  public:
    // Copies `from` into `folder` and flushes it to disk. Throws Error(usage) if `from` is no readable regular file, Error(storage)
    // if the copy cannot be written.
    UnpublishedCopy(const std::filesystem::path& from, const std::filesystem::path& folder);
    UnpublishedCopy(const UnpublishedCopy&) = delete;
    UnpublishedCopy& operator=(const UnpublishedCopy&) = delete;
    ~UnpublishedCopy();

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] const std::string& sha256() const { return sha256_; }  // of the bytes as they were copied
    [[nodiscard]] std::int64_t bytes() const { return bytes_; }

    // Gives the copy its name in the same folder, replacing what is there in one step. Throws Error(storage).
    void publish(const std::filesystem::path& name);

  private:
    std::filesystem::path path_;
    std::string sha256_;
    std::int64_t bytes_ = 0;
    bool published_ = false;
};

}  // namespace kestrel
