// Reader of GGUF files, versions 2 and 3, little-endian: a header of typed keys and a table of tensors, then their bytes. The file is
// mapped, never copied whole, and the header is not trusted: every count and length is compared with the bytes that remain before it is
// used. (Format: docs/gguf.md of ggml-org/ggml, 2026-08.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/file_tensor.hpp"

namespace kestrel {

// Numbers as the format gives them.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// Where a value lies in the file. Of an array, `type` and `bytes` are those of its elements; elements that are arrays are not kept.
struct GgufValue {
    GgufType type = GgufType::u8;
    bool is_array = false;
    std::uint64_t count = 1;
    std::span<const std::byte> bytes;  // of a string, its text
};

using GgufMap = std::map<std::string, GgufValue, std::less<>>;

// The header and the tensor table of a file that is in memory: `bytes` must outlive it. All errors are EngineErrors that name the file and
// the key or tensor: KESTREL_BAD_MODEL, or KESTREL_UNSUPPORTED for another version or byte order.
class GgufHeader {
  public:
    GgufHeader(std::string file, std::span<const std::byte> bytes);

    [[nodiscard]] bool has(std::string_view key) const { return values_.contains(key); }
    // Nothing if there is no such key; an error if its type does not fit. Counts are whole numbers of any integer type, 0 to 2^32 - 1.
    [[nodiscard]] std::optional<std::uint32_t> count(const std::string& key) const;
    [[nodiscard]] std::optional<double> number(const std::string& key) const;
    [[nodiscard]] std::optional<std::string> text(const std::string& key) const;
    // An array, or a single value as an array of one.
    [[nodiscard]] std::optional<std::vector<std::uint32_t>> counts(const std::string& key) const;
    [[nodiscard]] std::optional<std::vector<bool>> flags(const std::string& key) const;

    [[nodiscard]] const TensorTable& tensors() const { return tensors_; }
    [[nodiscard]] const std::string& file() const { return file_; }

  private:
    [[nodiscard]] const GgufValue* find(const std::string& key) const;
    [[nodiscard]] std::uint32_t count_at(const std::string& key, const GgufValue& value, std::uint64_t index) const;
    [[noreturn]] void wrong(const std::string& key, const std::string& expected) const;

    std::string file_;
    GgufMap values_;
    TensorTable tensors_;
};

}  // namespace kestrel
