// Models as Hugging Face directories.
#include <cmath>
#include <set>

#include "engine/error.hpp"
#include "engine/file_model.hpp"
#include "engine/json_file.hpp"
#include "engine/safetensors.hpp"
#include "engine/text.hpp"

namespace kestrel {
namespace {

using nlohmann::json;

constexpr std::uintmax_t largest_index_bytes = std::uintmax_t{64} << 20;
const std::string text_prefix = "model.";
const std::string whole_prefix = "model.language_model.";

void add_file(TensorFiles& files, const std::filesystem::path& path) {
    Safetensors file(path);
    for (const auto& [name, tensor] : file.tensors()) {
        const auto [at, fresh] = files.table.emplace(name, tensor);
        if (!fresh) bad_model(tensor.where + ": duplicate of " + at->second.where + ", expected it in one file");
    }
    files.mappings.push_back(std::move(file).take_mapping());
}

// A checkpoint in parts: the index says which tensor lies in which file.
void add_parts(TensorFiles& files, const std::filesystem::path& index) {
    const json table = read_json(index, largest_index_bytes);
    const auto map = table.find("weight_map");
    if (map == table.end() || !map->is_object() || map->empty()) {
        bad_model(index.string() + ": expected an object \"weight_map\" from tensor names to file names");
    }
    std::set<std::string> names;
    for (const auto& [tensor, file] : map->items()) {
        const std::string name = file.is_string() ? file.get<std::string>() : "";
        if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos || name == "..") {
            bad_model(index.string() + ": tensor " + in_quotes(tensor) + ": " + in_quotes(name) + " is not a file name beside the index");
        }
        names.insert(name);
    }
    for (const std::string& name : names) add_file(files, index.parent_path() / name);
    for (const auto& [tensor, file] : map->items()) {
        const std::string expected = (index.parent_path() / file.get<std::string>()).string();
        const auto found = files.table.find(tensor);
        if (found == files.table.end() || !found->second.where.starts_with(expected + ":")) {
            bad_model(index.string() + ": tensor " + in_quotes(tensor) + ": expected in " + expected + ", found " +
                      (found == files.table.end() ? "in no file" : found->second.where));
        }
    }
}

TensorFiles open_files(const std::filesystem::path& directory) {
    const std::filesystem::path single = directory / "model.safetensors";
    const std::filesystem::path index = directory / "model.safetensors.index.json";
    TensorFiles files;
    std::error_code error;
    if (!std::filesystem::exists(single, error) && std::filesystem::exists(index, error)) {
        files.missing_in = index.string();
        add_parts(files, index);
    } else {
        files.missing_in = single.string();
        add_file(files, single);
    }
    return files;
}

std::vector<std::string> spellings(const TensorSpec& tensor) {
    std::vector<std::string> names{tensor.name};
    if (tensor.name.starts_with(text_prefix)) names.push_back(whole_prefix + tensor.name.substr(text_prefix.size()));
    return names;
}

// The vision tower and the block that predicts further tokens.
bool ignorable(std::string_view name) {
    return name.starts_with("model.visual.") || name.starts_with("visual.") || name.starts_with("mtp.");
}

void convert(Role role, std::span<float> values) {
    switch (role) {
        case Role::input_norm:
        case Role::post_norm:
        case Role::final_norm:
        case Role::q_norm:
        case Role::k_norm:
            for (float& value : values) value = 1.0F + value;
            break;
        case Role::decay_rate:
            // Rounding to f32 hides the last-bit differences between versions of the library's exp.
            for (float& value : values) value = static_cast<float>(-std::exp(static_cast<double>(value)));
            break;
        default:
            break;
    }
}

}  // namespace

std::unique_ptr<ModelSource> open_hf(const std::filesystem::path& directory) {
    ModelDims dims = read_hf_config(directory);
    FileFormat format{spellings, ignorable, convert};
    if (dims.tied_head) format.unread.push_back({Role::head, 0, "lm_head.weight", {dims.vocab, dims.hidden}});
    return std::make_unique<FileModel>(directory, std::move(dims), open_files(directory), std::move(format));
}

}  // namespace kestrel
