// Where a model comes from. Behind this stand descriptions (synthetic.hpp), Hugging Face directories and GGUF files (file_model.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "engine/model_config.hpp"
#include "engine/switches.hpp"
#include "engine/weights.hpp"

namespace kestrel {

// What is known before any weight is read. The names, shapes and types of a file's tensors are checked by then, so that nobody allocates
// what a file merely claims.
class ModelSource {
  public:
    ModelSource(std::filesystem::path where, ModelDims shape) : path(std::move(where)), dims(std::move(shape)) {}
    virtual ~ModelSource() = default;
    ModelSource(const ModelSource&) = delete;
    ModelSource& operator=(const ModelSource&) = delete;

    // In which a matrix is stored.
    [[nodiscard]] virtual TensorType stored_type(const TensorSpec& matrix) const = 0;

    // Fills `block` (layout.bytes()), whatever types the layout holds the matrices in; the result does not depend on `threads`. Throws
    // EngineError (KESTREL_BAD_MODEL) naming file, tensor and element if a value is not finite.
    virtual void load(const WeightLayout& layout, std::uint32_t threads, std::byte* block) const = 0;

    const std::filesystem::path path;
    const ModelDims dims;
};

// Opens what lies at `path`. Throws EngineError: bad model, unsupported kind of model.
[[nodiscard]] std::unique_ptr<ModelSource> open_model(const std::filesystem::path& path);

// Values of the switch KESTREL_WEIGHTS, in their order: matrices as they are stored, or the unquantised ones made q4_0 when loaded.
enum class WeightFormat : std::uint8_t { stored, q4_0 };
[[nodiscard]] const SwitchDescription& weights_switch();

// Throws EngineError (KESTREL_BAD_MODEL) naming file and tensor if a row of it is not a whole number of its type's blocks.
[[nodiscard]] WeightLayout layout_of(const ModelSource& source, WeightFormat format);

}  // namespace kestrel
