// Models in files: a table of tensors, bound to the tensors that the model's shape asks for.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/file_tensor.hpp"
#include "engine/mapped_file.hpp"
#include "engine/model_source.hpp"

namespace kestrel {

// How a format names and stores what the block holds.
struct FileFormat {
    // A tensor's possible names; the first is the usual one.
    std::function<std::vector<std::string>(const TensorSpec&)> spellings;
    // Tensors of parts that text decoding does not use.
    std::function<bool(std::string_view name)> ignorable;
    // From stored to held values (weights.hpp) of an f32 tensor.
    void (*convert)(Role role, std::span<float> values) = nullptr;
    // Tensors that may be there although nothing reads them; if so, in this shape and a type that could be read.
    std::vector<TensorSpec> unread = {};
};

// Tables of the files, and the mappings that keep their bytes.
struct TensorFiles {
    std::string missing_in;  // file that is blamed for a missing tensor
    TensorTable table;
    std::vector<MappedFile> mappings;
};

class FileModel : public ModelSource {
  public:
    // Throws EngineError (KESTREL_BAD_MODEL) naming file and tensor, what was expected and what was found, if one is missing, there in two
    // spellings, of another shape, or unknown; KESTREL_UNSUPPORTED if its type cannot be read. Reads no value.
    FileModel(std::filesystem::path where, ModelDims shape, TensorFiles files, FileFormat format);

    [[nodiscard]] TensorType stored_type(const TensorSpec& matrix) const override;
    void load(const WeightLayout& layout, std::uint32_t threads, std::byte* block) const override;

  private:
    // Under any of its names; null if there is none.
    [[nodiscard]] const FileTensor* find(const TensorSpec& tensor) const;
    [[nodiscard]] const FileTensor& bind(const TensorSpec& tensor) const;
    [[nodiscard]] const FileTensor& of(const TensorSpec& tensor) const { return *bound_.find(tensor.name)->second; }

    TensorFiles files_;
    FileFormat format_;
    std::map<std::string, const FileTensor*, std::less<>> bound_;  // by canonical name
};

// A directory with config.json of model type qwen3_5 or qwen3_5_text, and model.safetensors or the files of
// model.safetensors.index.json, in F32, BF16 or F16. Names start with "model." or "model.language_model.". A head beside an embedding that
// the configuration ties it to is not read, as in the reference implementation.
[[nodiscard]] std::unique_ptr<ModelSource> open_hf(const std::filesystem::path& directory);

// A GGUF file of architecture qwen35 with tensors of the types F32, F16, BF16, Q4_0, Q4_1, Q8_0 and Q6_K.
[[nodiscard]] std::unique_ptr<ModelSource> open_gguf(const std::filesystem::path& file);

}  // namespace kestrel
