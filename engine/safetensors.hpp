// Reader of safetensors files: a length, a JSON table of tensors, then their bytes. The file is mapped, never copied whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kestrel {

// A read-only view of a file's bytes.
class MappedFile {
  public:
    // Throws EngineError (KESTREL_BAD_MODEL) if it cannot be opened or is empty.
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

class Safetensors {
  public:
    // Checks the whole table: dtypes, shapes against lengths, no overlap, nothing beyond the end.
    // Throws EngineError (KESTREL_BAD_MODEL) naming file and tensor, what was expected and what was found.
    explicit Safetensors(const std::filesystem::path& path);

    [[nodiscard]] bool has(std::string_view name) const { return tensors_.contains(name); }

    // Throws unless the tensor is there with this shape and a dtype that read() takes.
    void check(const std::string& name, std::span<const std::uint64_t> shape) const;

    // Checks, then writes tensor `name` as f32 to out, row-major; out.size() is the product of `shape`. Source F32, BF16 or F16.
    void read(const std::string& name, std::span<const std::uint64_t> shape, std::span<float> out) const;

  private:
    struct Entry {
        std::string dtype;
        std::vector<std::uint64_t> shape;
        std::uint64_t begin = 0;  // in the data part
        std::uint64_t end = 0;
    };

    void read_table(std::string_view text);
    [[nodiscard]] const Entry& checked(const std::string& name, std::span<const std::uint64_t> shape) const;
    void check_overlap() const;

    std::string name_;
    MappedFile file_;
    std::span<const std::byte> data_;
    std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace kestrel
