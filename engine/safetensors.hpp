// Reader of safetensors files: a length, a JSON table of tensors, then their bytes. The file is mapped, never copied whole, and the table
// is not trusted.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "engine/file_tensor.hpp"
#include "engine/mapped_file.hpp"

namespace kestrel {

// The table of a file that is in memory. Checks all of it: dtypes, shapes against lengths, no name twice, no overlap, nothing beyond the
// end. Throws EngineError (KESTREL_BAD_MODEL) naming file and tensor, what was expected and what was found.
[[nodiscard]] TensorTable read_safetensors(const std::string& file, std::span<const std::byte> bytes);

class Safetensors {
  public:
    explicit Safetensors(const std::filesystem::path& path) : file_(path), tensors_(read_safetensors(path.string(), file_.bytes())) {}

    [[nodiscard]] const TensorTable& tensors() const { return tensors_; }
    // What keeps the bytes of the tensors.
    [[nodiscard]] MappedFile take_mapping() && { return std::move(file_); }

  private:
    MappedFile file_;
    TensorTable tensors_;
};

}  // namespace kestrel
