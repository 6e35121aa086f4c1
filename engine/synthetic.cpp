#include "engine/synthetic.hpp"

#include <toml++/toml.h>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

#include "engine/cpu/thread_pool.hpp"
#include "engine/digest.hpp"
#include "engine/error.hpp"
#include "engine/synthetic_blocks.hpp"
#include "engine/text.hpp"

namespace kestrel {
namespace {

constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ULL;

// Reads a table whose every key must be known and used.
class Table {
  public:
    Table(const toml::table& table, std::string file, std::string prefix)
        : table_(table), file_(std::move(file)), prefix_(std::move(prefix)) {}

    template <class T>
    [[nodiscard]] T need(const char* key, const char* expected) {
        used_.insert(key);
        const std::optional<T> value = table_[key].value_exact<T>();
        if (!value) {
            std::ostringstream found;
            if (table_.contains(key)) {
                found << table_[key].type();
            } else {
                found << "nothing";
            }
            bad_model(file_ + ": key \"" + prefix_ + key + "\": expected " + expected + ", found " + found.str());
        }
        return *value;
    }

    // validate() knows the real limits; here it only has to fit.
    [[nodiscard]] std::uint32_t count(const char* key) {
        const auto value = need<std::int64_t>(key, "a whole number");
        if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
            bad_model(file_ + ": key \"" + prefix_ + key + "\": " + std::to_string(value) + " is out of range");
        }
        return static_cast<std::uint32_t>(value);
    }

    [[nodiscard]] const toml::table& inside(const char* key) {
        used_.insert(key);
        const toml::table* inner = table_[key].as_table();
        if (inner == nullptr) bad_model(file_ + ": table [" + prefix_ + key + "] is missing");
        return *inner;
    }

    [[nodiscard]] bool has(const char* key) const { return table_.contains(key); }

    void reject_unknown() const {
        for (const auto& [key, value] : table_) {
            if (!used_.contains(std::string(key.str()))) {
                bad_model(file_ + ": key \"" + prefix_ + std::string(key.str()) + "\" is unknown");
            }
        }
    }

  private:
    const toml::table& table_;
    std::string file_;
    std::string prefix_;
    std::set<std::string> used_;
};

ModelDims read_dims(Table& dims_table, const std::string& file) {
    ModelDims d;
    d.vocab = dims_table.count("vocab");
    d.hidden = dims_table.count("hidden");
    d.intermediate = dims_table.count("intermediate");
    const std::uint32_t layers = dims_table.count("layers");
    const std::uint32_t interval = dims_table.count("full_attention_interval");
    d.heads = dims_table.count("heads");
    d.kv_heads = dims_table.count("kv_heads");
    d.head_dim = dims_table.count("head_dim");
    d.rotary_dim = dims_table.count("rotary_dim");
    d.rope_theta = dims_table.need<double>("rope_theta", "a number with a decimal point");
    d.rms_eps = dims_table.need<double>("rms_norm_eps", "a number with a decimal point");
    d.k_heads = dims_table.count("gdn_key_heads");
    d.v_heads = dims_table.count("gdn_value_heads");
    d.k_dim = dims_table.count("gdn_key_dim");
    d.v_dim = dims_table.count("gdn_value_dim");
    d.conv_taps = dims_table.count("conv_taps");
    d.tied_head = dims_table.need<bool>("tied_head", "true or false");
    dims_table.reject_unknown();
    if (layers > 4096) bad_model(file + ": key \"dims.layers\": " + std::to_string(layers) + ", allowed are 1 to 4096");
    if (interval == 0) bad_model(file + ": key \"dims.full_attention_interval\": must be at least 1");
    d.full_attention = layers_by_interval(layers, interval);
    validate(d, file);
    return d;
}

void read_types(Table& root, ModelDescription& description, const std::string& file) {
    if (!root.has("weights")) return;
    Table table(root.inside("weights"), file, "weights.");
    const auto type = [&](const char* key, TensorType otherwise) {
        if (!table.has(key)) return otherwise;
        const auto name = table.need<std::string>(key, "a string");
        const std::optional<TensorType> found = tensor_type_named(name);
        if (found) return *found;
        bad_model(file + ": key \"weights." + key + "\": expected f32, f16, bf16, q4_0, q4_1, q8_0 or q6_k, found " + in_quotes(name));
    };
    description.matrices = type("matrices", TensorType::f32);
    description.head = type("head", description.matrices);
    table.reject_unknown();
}

struct Scale {
    bool levels;  // 15 of them, or a spread around `centre`
    float centre;
    int shift;
};

// Smallest s with 4^s >= 18 x: levels -7..7 have variance 18.7, so a row of x weights then maps unit variance to about one.
int shift_for(std::uint64_t columns) {
    int shift = 0;
    while ((std::uint64_t{1} << (2 * shift)) < 18 * columns) ++shift;
    return shift;
}

Scale scale_of(const TensorSpec& tensor) {
    switch (tensor.role) {
        case Role::embed:
            return {true, 0.0F, 2};
        case Role::beta:
        case Role::alpha:
            return {false, 0.0F, shift_for(tensor.shape[1]) - 3};
        case Role::input_norm:
        case Role::post_norm:
        case Role::final_norm:
        case Role::q_norm:
        case Role::k_norm:
            return {false, 1.0F, 2};
        case Role::gated_norm:
            return {false, 1.0F, 1};
        case Role::conv:
            return {false, 0.0F, 0};
        case Role::decay_rate:
            return {false, -1.25F, 0};
        case Role::dt_bias:
            return {false, -2.0F, -1};
        default:
            return {true, 0.0F, shift_for(tensor.shape[1])};
    }
}

int level_of(std::uint64_t u) {
    return static_cast<int>(((u >> 40) * 15) >> 24) - 7;
}

float spread_at(const SyntheticTensor& values, std::uint64_t u) {
    const auto step = static_cast<int>(u >> 48) - (1 << 15);
    return values.centre + static_cast<float>(step) * 0x1p-15F * values.unit();
}

class SyntheticModel : public ModelSource {
  public:
    SyntheticModel(const std::filesystem::path& where, ModelDescription description)
        : ModelSource(where, description.dims), description_(std::move(description)) {}
    [[nodiscard]] TensorType stored_type(const TensorSpec& matrix) const override;
    void load(const WeightLayout& layout, std::uint32_t threads, std::byte* block) const override;

  private:
    ModelDescription description_;
};

}  // namespace

float SyntheticTensor::unit() const {
    return shift >= 0 ? 1.0F / static_cast<float>(1U << shift) : static_cast<float>(1U << -shift);
}

SyntheticTensor synthetic_tensor(std::uint64_t seed, std::uint64_t number, const TensorSpec& tensor) {
    const Scale scale = scale_of(tensor);
    return {mix(seed + (number + 1) * golden), scale.levels, scale.centre, scale.shift};
}

ModelDescription read_description(const std::filesystem::path& path) {
    const std::string file = path.string();
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (error) bad_model(file + ": cannot be read (" + error.message() + ")");
    if (bytes > (1U << 20)) bad_model(file + ": too large for a model description");
    toml::table parsed;
    try {
        parsed = toml::parse_file(file);
    } catch (const toml::parse_error& problem) {
        bad_model(file + ": line " + std::to_string(problem.source().begin.line) +
                  ": not valid TOML: " + std::string(problem.description()));
    }
    Table root(parsed, file, "");
    ModelDescription description;
    description.name = root.need<std::string>("name", "a string");
    const auto seed = root.need<std::int64_t>("seed", "a whole number");
    if (seed < 0) bad_model(file + ": key \"seed\": expected 0 or more, found " + std::to_string(seed));
    description.seed = static_cast<std::uint64_t>(seed);
    Table dims(root.inside("dims"), file, "dims.");
    description.dims = read_dims(dims, file);
    read_types(root, description, file);
    root.reject_unknown();
    return description;
}

namespace {

TensorType SyntheticModel::stored_type(const TensorSpec& matrix) const {
    const Role head = dims.tied_head ? Role::embed : Role::head;
    return matrix.role == head ? description_.head : description_.matrices;
}

void SyntheticModel::load(const WeightLayout& layout, std::uint32_t threads, std::byte* block) const {
    cpu::ThreadPool pool(threads);
    std::uint64_t number = 0;
    for (const TensorSpec& tensor : layout.tensors()) {
        const SyntheticTensor values = synthetic_tensor(description_.seed, number++, tensor);
        const auto number_at = [&](std::uint64_t e) { return mix(values.key + (e + 1) * golden); };
        const std::size_t elements = tensor.elements();
        if (!values.levels) {
            std::vector<float> canonical(elements);
            for (std::size_t e = 0; e < elements; ++e) canonical[e] = spread_at(values, number_at(e));
            to_block(tensor, canonical, block);
            continue;
        }
        const TensorTypeInfo& info = info_of(tensor.type);
        pool.run([&](std::size_t part, std::size_t parts) {
            const cpu::Range mine = cpu::share_of(elements, 1024, part, parts);
            std::array<int, 256> levels{};
            for (std::size_t e = mine.first; e < mine.last; e += info.block_elements) {
                for (std::size_t j = 0; j < info.block_elements; ++j) levels[j] = level_of(number_at(e + j));
                pack_levels(tensor.type, levels.data(), values.shift, block + tensor.offset + bytes_of(info, e));
            }
        });
    }
}

}  // namespace

std::unique_ptr<ModelSource> open_description(const std::filesystem::path& file) {
    return std::make_unique<SyntheticModel>(file, read_description(file));
}

}  // namespace kestrel
