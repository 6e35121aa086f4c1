// What the engine's tests share: the library under test, loaded as the service loads it, and small owners around its C interface.
#pragma once

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/abi.h"

namespace kestrel::test {

// The environment, or what the build defined under the same name.
inline std::string setting(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
    if (otherwise == nullptr) throw std::runtime_error(std::string("set ") + name);
    return otherwise;
}

inline const kestrel_engine_api& load_engine(const std::string& path) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(dlerror());
    void* entry = dlsym(handle, KESTREL_ENTRY_SYMBOL);
    if (entry == nullptr) throw std::runtime_error(path + " has no entry");
    const kestrel_engine_api* api = reinterpret_cast<kestrel_engine_entry_fn>(entry)(KESTREL_ABI_VERSION);
    if (api == nullptr) throw std::runtime_error(path + " does not serve this version");
    return *api;
}

#if !defined(KESTREL_ENGINE_LIB)
#define KESTREL_ENGINE_LIB nullptr
#endif
#if !defined(KESTREL_ENGINE_LIB_BASELINE)
#define KESTREL_ENGINE_LIB_BASELINE nullptr
#endif
#if !defined(KESTREL_CONFIGS)
#define KESTREL_CONFIGS nullptr
#endif
#if !defined(KESTREL_FIXTURES)
#define KESTREL_FIXTURES nullptr
#endif

inline const kestrel_engine_api& engine_api() {
    static const kestrel_engine_api& api = load_engine(setting("KESTREL_ENGINE_LIB", KESTREL_ENGINE_LIB));
    return api;
}
// The build with VLLM_GEMV_AB_BASELINE=1.
inline const kestrel_engine_api& baseline_api() {
    static const kestrel_engine_api& api = load_engine(setting("KESTREL_ENGINE_LIB_BASELINE", KESTREL_ENGINE_LIB_BASELINE));
    return api;
}
// The settings may name the folder itself or the one above it.
inline std::filesystem::path inside(const std::string& folder, const char* usual_child, const std::string& name) {
    const std::filesystem::path direct = std::filesystem::path(folder) / name;
    return std::filesystem::exists(direct) ? direct : std::filesystem::path(folder) / usual_child / name;
}
inline std::string description(const std::string& name) {
    return inside(setting("KESTREL_CONFIGS", KESTREL_CONFIGS), "models", name + ".toml").string();
}
inline std::filesystem::path checkpoint(const std::string& name) {
    return inside(setting("KESTREL_FIXTURES", KESTREL_FIXTURES), "qwen35", name);
}

inline std::filesystem::path gguf(const std::string& file) {
    return inside(setting("KESTREL_FIXTURES", KESTREL_FIXTURES), "gguf", file);
}

template <class Table>
const Table& capability(const kestrel_engine_api& api, const char* name) {
    const void* table = api.capability(name);
    if (table == nullptr) throw std::runtime_error(std::string("capability missing: ") + name);
    return *static_cast<const Table*>(table);
}

// Arguments that own their texts.
struct Args {
    explicit Args(std::string model_path, std::string gdn_delta = "reg") : model(std::move(model_path)), value(std::move(gdn_delta)) {
        list = {{"VLLM_CUDA_GDN_DELTA", value.c_str()}};
        args.struct_size = sizeof args;
        args.threads = 1;
        args.max_positions = 96;
        args.model = model.c_str();
        args.switches = list.data();
        args.switch_count = list.size();
    }
    Args(const Args&) = delete;
    Args& operator=(const Args&) = delete;
    Args& threads(std::uint32_t count) {
        args.threads = count;
        return *this;
    }

    std::string model;
    std::string value;
    std::vector<kestrel_switch> list;
    kestrel_open_args args{};
};

class Engine {
  public:
    Engine(const kestrel_engine_api& api, const Args& args) : api_(api) { check(api.open(&args.args, &engine_)); }
    explicit Engine(const Args& args) : Engine(engine_api(), args) {}
    ~Engine() { api_.close(engine_); }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    void check(kestrel_status status) const {
        if (status != KESTREL_OK) throw std::runtime_error("status " + std::to_string(status) + ": " + api_.last_error());
    }
    std::int32_t decode(std::int32_t token) {
        std::int32_t next = -1;
        check(api_.decode(engine_, token, &next));
        return next;
    }
    void reset() { check(api_.reset(engine_)); }
    [[nodiscard]] kestrel_model_info info() const {
        kestrel_model_info info{};
        info.struct_size = sizeof info;
        check(api_.info(engine_, &info));
        return info;
    }
    [[nodiscard]] std::vector<float> logits() const {
        std::vector<float> out(info().vocab);
        check(api_.logits(engine_, out.data(), out.size()));
        return out;
    }
    [[nodiscard]] std::vector<float> read(kestrel_readout what, std::uint32_t layer = 0) const {
        const auto& state = capability<kestrel_state>(api_, KESTREL_CAP_STATE);
        std::size_t count = 0;
        check(state.read_size(engine_, what, layer, &count));
        std::vector<float> out(count);
        check(state.read(engine_, what, layer, out.data(), count));
        return out;
    }
    [[nodiscard]] std::vector<std::byte> save() const {
        const auto& state = capability<kestrel_state>(api_, KESTREL_CAP_STATE);
        std::size_t bytes = 0;
        check(state.size(engine_, &bytes));
        std::vector<std::byte> out(bytes);
        check(state.save(engine_, out.data(), out.size()));
        return out;
    }
    void restore(const std::vector<std::byte>& saved) {
        check(capability<kestrel_state>(api_, KESTREL_CAP_STATE).restore(engine_, saved.data(), saved.size()));
    }
    [[nodiscard]] kestrel_engine* handle() const { return engine_; }
    [[nodiscard]] const kestrel_engine_api& api() const { return api_; }

  private:
    const kestrel_engine_api& api_;
    kestrel_engine* engine_ = nullptr;
};

// Bits, not values: -0 and 0 differ, equal NaNs do not.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// A tensor of a safetensors file; T must match its dtype's width.
template <class T>
std::vector<T> read_tensor(const std::filesystem::path& file, const std::string& name) {
    std::ifstream in(file, std::ios::binary);
    std::uint64_t header = 0;
    in.read(reinterpret_cast<char*>(&header), sizeof header);
    std::string text(header, '\0');
    in.read(text.data(), static_cast<std::streamsize>(header));
    const auto offsets = nlohmann::json::parse(text).at(name).at("data_offsets").get<std::vector<std::size_t>>();
    std::vector<T> values((offsets[1] - offsets[0]) / sizeof(T));
    in.seekg(static_cast<std::streamoff>(sizeof header + header + offsets[0]));
    in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
    if (!in) throw std::runtime_error(file.string() + ": cannot read " + name);
    return values;
}

// A folder of its own, removed at the end.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "kestrel-engine-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    void write(const std::string& name, const std::string& content) const { std::ofstream(path_ / name, std::ios::binary) << content; }

  private:
    std::filesystem::path path_;
};

inline std::string content_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace kestrel::test
