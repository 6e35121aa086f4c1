// An engine behind engine/abi.h, as C++: statuses become Errors, handles have owners.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/abi.h"
#include "runner/platform/shared_library.hpp"
#include "runner/record/record.hpp"

namespace kestrel::plugin {

// What to open. `switches` absent: the environment counts; present, even empty: it is ignored.
struct OpenRequest {
    std::string model;
    std::optional<std::vector<SwitchSetting>> switches;
    std::uint32_t threads = 0;
    std::uint32_t max_positions = 1;
};

struct LentMemory {
    std::span<std::byte> weights;
    std::span<std::byte> workspace;
};

struct MemoryNeeds {
    bool device = false;
    std::size_t weights_bytes = 0;
    std::size_t workspace_bytes = 0;
    std::size_t alignment = 0;
    std::string layout_id;
    bool operator==(const MemoryNeeds&) const = default;
};

struct ModelInfo {
    int layers = 0;
    int gdn_layers = 0;
    int attention_layers = 0;
    int vocab = 0;
    int threads = 0;
    std::uint64_t parameters = 0;
    std::uint64_t state_bytes = 0;
    bool operator==(const ModelInfo&) const = default;
};

// One opened model. Must not outlive its library.
class Engine {
  public:
    Engine(const kestrel_engine_api& api, kestrel_engine* handle) : api_(&api), handle_(handle, api.close) {}

    [[nodiscard]] ModelInfo info() const;
    void reset();
    [[nodiscard]] std::int32_t decode(std::int32_t token) {
        std::int32_t next = 0;
        if (const kestrel_status status = api_->decode(handle_.get(), token, &next); status != KESTREL_OK) fail(status, "decode");
        return next;
    }
    void logits(std::span<float> out);

    // Of the last token; empty if the engine does not show them.
    [[nodiscard]] std::vector<float> hidden() { return read(KESTREL_READ_HIDDEN); }
    [[nodiscard]] std::vector<float> final_norm() { return read(KESTREL_READ_FINAL_NORM); }

    // The whole sequence state as opaque bytes; empty if the engine cannot save it.
    [[nodiscard]] std::vector<std::byte> save_state();
    void restore_state(std::span<const std::byte> state);

    [[nodiscard]] std::vector<SwitchSetting> effective_switches() const;

  private:
    [[nodiscard]] std::vector<float> read(kestrel_readout what);
    [[noreturn]] void fail(kestrel_status status, const char* call) const;
    const kestrel_engine_api* api_;
    std::unique_ptr<kestrel_engine, void (*)(kestrel_engine*)> handle_;
};

// A tensor that goes into or comes out of an operator: f32, row-major.
struct OperatorTensor {
    std::vector<std::uint64_t> shape;  // at most four extents
    std::vector<float> values;
};

// Device memory that an engine allocated for the caller. Must not outlive the engine's library.
class DeviceMemory {
  public:
    DeviceMemory(const kestrel_allocate& table, void* memory, std::size_t bytes)
        : table_(&table), memory_(static_cast<std::byte*>(memory)), bytes_(bytes) {}
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;
    ~DeviceMemory() { table_->release(KESTREL_MEMORY_DEVICE, memory_); }
    [[nodiscard]] std::byte* data() const { return memory_; }  // not readable by the host
    [[nodiscard]] std::size_t size() const { return bytes_; }

  private:
    const kestrel_allocate* table_;
    std::byte* memory_;
    std::size_t bytes_;
};

// A loaded engine library.
class EngineLibrary {
  public:
    explicit EngineLibrary(const std::string& path);

    [[nodiscard]] std::string engine_name() const { return api_->engine_name; }
    [[nodiscard]] std::string manifest() const;
    [[nodiscard]] std::uintptr_t load_address() const { return library_.load_address(); }

    // Null if the engine cannot allocate for others. Throws Error if the device has too little.
    [[nodiscard]] std::unique_ptr<DeviceMemory> allocate_device(std::size_t bytes) const;
    // Sets every byte of device memory, whoever allocated it.
    void fill_device(std::span<std::byte> memory, std::byte value) const;
    // Whether the library copies between the host and memory that the host cannot reach; the next three are only for such a library.
    // Several threads may copy at once.
    [[nodiscard]] bool copies_device_memory() const;
    void copy_in(std::span<std::byte> device, std::span<const std::byte> host) const;
    void copy_out(std::span<const std::byte> device, std::span<std::byte> host) const;
    // Host memory that the device reaches directly, so that copies are fast; null if there is none. Must not outlive the library.
    [[nodiscard]] std::shared_ptr<std::byte> allocate_staging(std::size_t bytes) const;
    // What decode runs on, e.g. "cuda: NVIDIA H200, UUID ..., driver API 13.0"; "" for the host's processors.
    [[nodiscard]] std::string device() const;

    // Absent if the engine cannot work in lent memory.
    [[nodiscard]] std::optional<MemoryNeeds> memory_needs(const OpenRequest& request) const;
    void load_weights(const OpenRequest& request, const LentMemory& memory) const;
    [[nodiscard]] std::string weights_digest(const OpenRequest& request, const LentMemory& memory) const;

    [[nodiscard]] Engine open(const OpenRequest& request, const LentMemory& memory = {}) const;

    struct SwitchDescription {
        std::string name;
        std::vector<std::string> values;  // [0] is the default
        std::string description;
    };
    [[nodiscard]] std::vector<SwitchDescription> switches() const;

    // Runs one operator (engine/operators.hpp names them and their shapes); outputs come with their shapes and receive the values. Returns
    // the engine's words if it does not have the operator or the variant, nothing if it ran. Throws Error otherwise.
    [[nodiscard]] std::optional<std::string> run_operator(const std::string& name, const std::string& variant,
                                                          const std::vector<OperatorTensor>& inputs,
                                                          std::vector<OperatorTensor>& outputs) const;

  private:
    template <typename Table>
    [[nodiscard]] const Table* capability(const char* name) const;
    [[noreturn]] void fail(kestrel_status status, const std::string& what) const;

    platform::SharedLibrary library_;
    const kestrel_engine_api* api_ = nullptr;
};

}  // namespace kestrel::plugin
