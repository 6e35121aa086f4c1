// Loading weights from a Hugging Face directory.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/error.hpp"
#include "engine/safetensors.hpp"
#include "engine/weights.hpp"

namespace kestrel {
namespace {

using nlohmann::json;

constexpr std::uintmax_t largest_index_bytes = std::uintmax_t{64} << 20;

// The files of a checkpoint that was saved in parts.
std::vector<std::filesystem::path> parts_of(const std::filesystem::path& index) {
    std::error_code error;
    if (std::filesystem::file_size(index, error) > largest_index_bytes || error) {
        bad_model(index.string() + ": cannot be read or is too large for an index");
    }
    std::set<std::string> names;
    try {
        std::ifstream in(index, std::ios::binary);
        const json table = json::parse(in);
        for (const auto& [tensor, file] : table.at("weight_map").items()) names.insert(file.get<std::string>());
    } catch (const json::exception& problem) {
        bad_model(index.string() + ": expected an object with a weight_map of file names: " + problem.what());
    }
    std::vector<std::filesystem::path> files;
    for (const std::string& name : names) {
        if (name.empty() || name.find('/') != std::string::npos) {
            bad_model(index.string() + ": \"" + name + "\" is not a file name beside the index");
        }
        files.push_back(index.parent_path() / name);
    }
    if (files.empty()) bad_model(index.string() + ": names no files");
    return files;
}

std::vector<Safetensors> open_checkpoint(const std::filesystem::path& directory) {
    const std::filesystem::path single = directory / "model.safetensors";
    const std::filesystem::path index = directory / "model.safetensors.index.json";
    std::vector<Safetensors> files;
    std::error_code error;
    if (!std::filesystem::exists(single, error) && std::filesystem::exists(index, error)) {
        for (const auto& part : parts_of(index)) files.emplace_back(part);
    } else {
        files.emplace_back(single);
    }
    return files;
}

// A checkpoint's files, and where each tensor of ours is among them.
class Checkpoint {
  public:
    explicit Checkpoint(const std::filesystem::path& directory) : files_(open_checkpoint(directory)) {}

    struct Place {
        const Safetensors* file;
        std::string name;  // as the file spells it
    };

    // A tensor that is nowhere is said to be in the first file, whose reader then reports it as missing.
    [[nodiscard]] Place find(const std::string& canonical) const {
        std::vector<std::string> spellings{canonical};
        if (canonical.starts_with(text_prefix)) spellings.push_back(whole_prefix + canonical.substr(text_prefix.size()));
        for (const std::string& name : spellings) {
            for (const Safetensors& file : files_) {
                if (file.has(name)) return {&file, name};
            }
        }
        return {&files_.front(), canonical};
    }

  private:
    inline static const std::string text_prefix = "model.";
    inline static const std::string whole_prefix = "model.language_model.";
    std::vector<Safetensors> files_;
};

}  // namespace

void check_hf_weights(const std::filesystem::path& directory, const WeightLayout& layout) {
    const Checkpoint checkpoint(directory);
    for (const TensorSpec& tensor : layout.tensors()) {
        const auto [file, name] = checkpoint.find(tensor.name);
        file->check(name, tensor.shape);
    }
}

void load_hf_weights(const std::filesystem::path& directory, const WeightLayout& layout, float* block) {
    const Checkpoint checkpoint(directory);
    std::vector<float> canonical;
    for (const TensorSpec& tensor : layout.tensors()) {
        const auto [file, name] = checkpoint.find(tensor.name);
        const std::size_t elements = tensor.elements();
        if (tensor.role == Role::conv) {
            canonical.resize(elements);
            file->read(name, tensor.shape, canonical);
            to_block(tensor, canonical, block);
        } else {
            file->read(name, tensor.shape, {block + tensor.offset, elements});
        }
    }
}

}  // namespace kestrel
