// A read-only view of a file's bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace kestrel {

class MappedFile {
  public:
    // Throws EngineError (KESTREL_BAD_MODEL) if it is not a regular file, cannot be opened or is empty.
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&&) = delete;
    MappedFile(const MappedFile&) = delete;
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

  private:
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace kestrel
