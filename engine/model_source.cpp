#include "engine/model_source.hpp"

#include "engine/error.hpp"
#include "engine/file_model.hpp"
#include "engine/synthetic.hpp"

namespace kestrel {

const SwitchDescription& weights_switch() {
    static constexpr const char* values[] = {"stored", "q4_0"};
    static constexpr SwitchDescription description{
        "KESTREL_WEIGHTS", values,
        "how matrices are held: stored as the model has them, q4_0 quantised when loaded (those that are quantised already stay)"};
    return description;
}

std::unique_ptr<ModelSource> open_model(const std::filesystem::path& path) {
    std::error_code error;
    const auto kind = std::filesystem::status(path, error);
    if (std::filesystem::is_directory(kind)) return open_hf(path);
    if (path.extension() == ".toml") return open_description(path);
    if (!std::filesystem::exists(kind)) bad_model(path.string() + ": no such file or directory");
    if (path.extension() == ".gguf") return open_gguf(path);
    fail(KESTREL_UNSUPPORTED,
         path.string() + ": this engine opens Hugging Face directories, *.gguf files and *.toml descriptions, not this file");
}

WeightLayout layout_of(const ModelSource& source, WeightFormat format) {
    const auto type_of = [&](const TensorSpec& matrix) {
        const TensorType stored = source.stored_type(matrix);
        const bool plain = info_of(stored).block_elements == 1;
        return format == WeightFormat::q4_0 && plain ? TensorType::q4_0 : stored;
    };
    try {
        return {source.dims, type_of};
    } catch (const EngineError& error) {
        fail(error.status(), source.path.string() + ": " + error.what());
    }
}

}  // namespace kestrel
