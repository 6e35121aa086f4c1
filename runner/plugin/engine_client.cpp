#include "runner/plugin/engine_client.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "runner/record/error.hpp"

namespace kestrel::plugin {
namespace {

// What the status means for the process's exit code: a wrong model or switch is the user's to mend, the rest ends the session.
ExitCode code_of(kestrel_status status) {
    switch (status) {
        case KESTREL_BAD_SWITCH:
            return ExitCode::not_comparable;
        case KESTREL_BAD_ARGUMENT:
        case KESTREL_BAD_MODEL:
            return ExitCode::usage;
        default:
            return ExitCode::invalid;
    }
}

// The C structures that open() takes, with storage for what they point to.
class OpenArguments {
  public:
    OpenArguments(const OpenRequest& request, const LentMemory& memory) {
        if (request.switches) {
            for (const SwitchSetting& one : *request.switches) switches_.push_back({one.name.c_str(), one.value.c_str()});
        }
        args_.struct_size = sizeof args_;
        args_.threads = request.threads;
        args_.model = request.model.c_str();
        static const kestrel_switch no_switch{"", ""};
        if (request.switches) args_.switches = switches_.empty() ? &no_switch : switches_.data();
        args_.switch_count = switches_.size();
        args_.max_positions = request.max_positions;
        if (!memory.weights.empty()) {
            args_.weights = memory.weights.data();
            args_.weights_bytes = memory.weights.size();
        }
        if (!memory.workspace.empty()) {
            args_.workspace = memory.workspace.data();
            args_.workspace_bytes = memory.workspace.size();
        }
    }
    [[nodiscard]] const kestrel_open_args* get() const { return &args_; }

  private:
    std::vector<kestrel_switch> switches_;
    kestrel_open_args args_{};
};

}  // namespace

void Engine::fail(kestrel_status status, const char* call) const {
    throw Error(code_of(status), std::string(api_->engine_name) + ": " + call + ": " + api_->last_error());
}

ModelInfo Engine::info() const {
    kestrel_model_info raw{};
    raw.struct_size = sizeof raw;
    if (const kestrel_status status = api_->info(handle_.get(), &raw); status != KESTREL_OK) fail(status, "info");
    return {static_cast<int>(raw.layers),
            static_cast<int>(raw.gdn_layers),
            static_cast<int>(raw.attention_layers),
            static_cast<int>(raw.vocab),
            static_cast<int>(raw.threads),
            raw.parameters,
            raw.state_bytes};
}

void Engine::reset() {
    if (const kestrel_status status = api_->reset(handle_.get()); status != KESTREL_OK) fail(status, "reset");
}

void Engine::logits(std::span<float> out) {
    if (const kestrel_status status = api_->logits(handle_.get(), out.data(), out.size()); status != KESTREL_OK) fail(status, "logits");
}

std::vector<float> Engine::read(kestrel_readout what) {
    const auto* state = static_cast<const kestrel_state*>(api_->capability(KESTREL_CAP_STATE));
    if (state == nullptr) return {};
    std::size_t count = 0;
    if (const kestrel_status status = state->read_size(handle_.get(), what, 0, &count); status != KESTREL_OK) fail(status, "readout size");
    std::vector<float> out(count);
    if (const kestrel_status status = state->read(handle_.get(), what, 0, out.data(), count); status != KESTREL_OK) fail(status, "readout");
    return out;
}

std::vector<std::byte> Engine::save_state() {
    const auto* state = static_cast<const kestrel_state*>(api_->capability(KESTREL_CAP_STATE));
    if (state == nullptr) return {};
    std::size_t bytes = 0;
    if (const kestrel_status status = state->size(handle_.get(), &bytes); status != KESTREL_OK) fail(status, "state size");
    std::vector<std::byte> out(bytes);
    if (const kestrel_status status = state->save(handle_.get(), out.data(), out.size()); status != KESTREL_OK) fail(status, "save state");
    return out;
}

void Engine::restore_state(std::span<const std::byte> saved) {
    const auto* state = static_cast<const kestrel_state*>(api_->capability(KESTREL_CAP_STATE));
    if (state == nullptr) throw Error(ExitCode::invalid, std::string(api_->engine_name) + " cannot restore a state");
    if (const kestrel_status status = state->restore(handle_.get(), saved.data(), saved.size()); status != KESTREL_OK) {
        fail(status, "restore state");
    }
}

std::vector<SwitchSetting> Engine::effective_switches() const {
    const auto* table = static_cast<const kestrel_switches*>(api_->capability(KESTREL_CAP_SWITCHES));
    std::vector<SwitchSetting> all;
    if (table == nullptr) return all;
    for (std::size_t i = 0; i < table->count(); ++i) {
        kestrel_switch_info info{};
        info.struct_size = sizeof info;
        const char* value = nullptr;
        if (const kestrel_status status = table->describe(i, &info); status != KESTREL_OK) fail(status, "describe switch");
        if (const kestrel_status status = table->effective(handle_.get(), i, &value); status != KESTREL_OK)
            fail(status, "effective switch");
        all.push_back({info.name, value});
    }
    return all;
}

EngineLibrary::EngineLibrary(const std::string& path) : library_(path) {
    const auto entry = reinterpret_cast<kestrel_engine_entry_fn>(library_.symbol(KESTREL_ENTRY_SYMBOL));
    api_ = entry(KESTREL_ABI_VERSION);
    if (api_ == nullptr || api_->abi_version != KESTREL_ABI_VERSION || api_->struct_size < sizeof(kestrel_engine_api)) {
        throw Error(ExitCode::not_comparable, path + " does not serve engine interface version " + std::to_string(KESTREL_ABI_VERSION) +
                                                  "; rebuild it against this version's engine/abi.h");
    }
}

std::string EngineLibrary::manifest() const {
    std::size_t bytes = 0;
    const char* text = api_->manifest(&bytes);
    return text == nullptr ? std::string() : std::string(text, bytes);
}

template <typename Table>
const Table* EngineLibrary::capability(const char* name) const {
    return static_cast<const Table*>(api_->capability(name));
}

void EngineLibrary::fail(kestrel_status status, const std::string& what) const {
    throw Error(code_of(status), std::string(api_->engine_name) + ": " + what + ": " + api_->last_error());
}

std::optional<MemoryNeeds> EngineLibrary::memory_needs(const OpenRequest& request) const {
    const auto* borrow = capability<kestrel_borrow>(KESTREL_CAP_BORROW);
    if (borrow == nullptr) return std::nullopt;
    const OpenArguments arguments(request, {});
    kestrel_memory_needs raw{};
    raw.struct_size = sizeof raw;
    if (const kestrel_status status = borrow->needs(arguments.get(), &raw); status != KESTREL_OK)
        fail(status, "memory needs of " + request.model);
    raw.layout_id[sizeof raw.layout_id - 1] = '\0';
    return MemoryNeeds{raw.kind == KESTREL_MEMORY_DEVICE, raw.weights_bytes, raw.workspace_bytes, raw.alignment, raw.layout_id};
}

std::unique_ptr<DeviceMemory> EngineLibrary::allocate_device(std::size_t bytes) const {
    const auto* allocate = capability<kestrel_allocate>(KESTREL_CAP_ALLOCATE);
    if (allocate == nullptr) return nullptr;
    void* memory = nullptr;
    if (const kestrel_status status = allocate->allocate(KESTREL_MEMORY_DEVICE, bytes, &memory); status != KESTREL_OK) {
        fail(status, "allocate " + std::to_string(bytes) + " bytes on the device");
    }
    return std::make_unique<DeviceMemory>(*allocate, memory, bytes);
}

void EngineLibrary::fill_device(std::span<std::byte> memory, std::byte value) const {
    const auto* allocate = capability<kestrel_allocate>(KESTREL_CAP_ALLOCATE);
    const kestrel_status status = allocate->fill(KESTREL_MEMORY_DEVICE, memory.data(), std::to_integer<int>(value), memory.size());
    if (status != KESTREL_OK) fail(status, "fill device memory");
}

// Both were added to the table after its first version, and sessions compare old builds with new ones.
bool EngineLibrary::copies_device_memory() const {
    const auto* allocate = capability<kestrel_allocate>(KESTREL_CAP_ALLOCATE);
    return allocate != nullptr && allocate->struct_size >= offsetof(kestrel_allocate, copy_out) + sizeof allocate->copy_out &&
           allocate->copy_in != nullptr && allocate->copy_out != nullptr;
}

void EngineLibrary::copy_in(std::span<std::byte> device, std::span<const std::byte> host) const {
    const auto* allocate = capability<kestrel_allocate>(KESTREL_CAP_ALLOCATE);
    const kestrel_status status = allocate->copy_in(KESTREL_MEMORY_DEVICE, device.data(), host.data(), host.size());
    if (status != KESTREL_OK) fail(status, "copy to the device");
}

void EngineLibrary::copy_out(std::span<const std::byte> device, std::span<std::byte> host) const {
    const auto* allocate = capability<kestrel_allocate>(KESTREL_CAP_ALLOCATE);
    const kestrel_status status = allocate->copy_out(KESTREL_MEMORY_DEVICE, device.data(), host.data(), host.size());
    if (status != KESTREL_OK) fail(status, "copy from the device");
}

std::shared_ptr<std::byte> EngineLibrary::allocate_staging(std::size_t bytes) const {
    const auto* allocate = capability<kestrel_allocate>(KESTREL_CAP_ALLOCATE);
    void* memory = nullptr;
    if (allocate->allocate(KESTREL_MEMORY_HOST, bytes, &memory) != KESTREL_OK) return nullptr;
    return {static_cast<std::byte*>(memory), [release = allocate->release](std::byte* own) { release(KESTREL_MEMORY_HOST, own); }};
}

std::string EngineLibrary::device() const {
    const auto* allocate = capability<kestrel_allocate>(KESTREL_CAP_ALLOCATE);
    if (allocate == nullptr) return "";
    std::array<char, 256> text{};
    if (const kestrel_status status = allocate->device(text.data(), text.size()); status != KESTREL_OK) fail(status, "device");
    return text.data();
}

void EngineLibrary::load_weights(const OpenRequest& request, const LentMemory& memory) const {
    const auto* borrow = capability<kestrel_borrow>(KESTREL_CAP_BORROW);
    const OpenArguments arguments(request, memory);
    if (const kestrel_status status = borrow->load(arguments.get()); status != KESTREL_OK) fail(status, "load " + request.model);
}

std::string EngineLibrary::weights_digest(const OpenRequest& request, const LentMemory& memory) const {
    const auto* borrow = capability<kestrel_borrow>(KESTREL_CAP_BORROW);
    const OpenArguments arguments(request, memory);
    std::array<char, 65> digest{};
    if (const kestrel_status status = borrow->digest(arguments.get(), digest.data()); status != KESTREL_OK)
        fail(status, "digest of weights");
    return digest.data();
}

Engine EngineLibrary::open(const OpenRequest& request, const LentMemory& memory) const {
    const OpenArguments arguments(request, memory);
    kestrel_engine* handle = nullptr;
    if (const kestrel_status status = api_->open(arguments.get(), &handle); status != KESTREL_OK) fail(status, "open " + request.model);
    return {*api_, handle};
}

std::vector<EngineLibrary::SwitchDescription> EngineLibrary::switches() const {
    const auto* table = capability<kestrel_switches>(KESTREL_CAP_SWITCHES);
    std::vector<SwitchDescription> all;
    if (table == nullptr) return all;
    for (std::size_t i = 0; i < table->count(); ++i) {
        kestrel_switch_info info{};
        info.struct_size = sizeof info;
        if (const kestrel_status status = table->describe(i, &info); status != KESTREL_OK) fail(status, "describe switch");
        all.push_back({info.name, std::vector<std::string>(info.values, info.values + info.value_count), info.description});
    }
    return all;
}

std::optional<std::string> EngineLibrary::run_operator(const std::string& name, const std::string& variant,
                                                       const std::vector<OperatorTensor>& inputs,
                                                       std::vector<OperatorTensor>& outputs) const {
    const auto* table = capability<kestrel_operator>(KESTREL_CAP_OPERATOR);
    if (table == nullptr) return std::string(api_->engine_name) + " runs no single operators";
    const auto view = [](const OperatorTensor& tensor) {
        kestrel_tensor raw{};
        raw.data = const_cast<float*>(tensor.values.data());  // the interface has one tensor type; inputs are not written
        raw.rank = static_cast<std::uint32_t>(tensor.shape.size());
        std::copy(tensor.shape.begin(), tensor.shape.end(), raw.shape);
        return raw;
    };
    std::vector<kestrel_tensor> in;
    std::vector<kestrel_tensor> out;
    for (const OperatorTensor& tensor : inputs) in.push_back(view(tensor));
    for (const OperatorTensor& tensor : outputs) out.push_back(view(tensor));
    const kestrel_status status = table->run(name.c_str(), variant.c_str(), in.data(), in.size(), out.data(), out.size());
    if (status == KESTREL_UNSUPPORTED) return std::string(api_->last_error());
    if (status != KESTREL_OK) fail(status, name + " " + variant);
    return std::nullopt;
}

}  // namespace kestrel::plugin
