// An opened model: its memory and its backend.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/abi.h"
#include "engine/backend.hpp"
#include "engine/memory.hpp"
#include "engine/model_source.hpp"
#include "engine/weights.hpp"

namespace kestrel {

// The backend's switches, and after them KESTREL_WEIGHTS, which all engines have.
[[nodiscard]] std::span<const SwitchDescription> engine_switches();

// The model named in open arguments (see open_model). Throws EngineError: bad model, unsupported kind of model, bad argument.
[[nodiscard]] std::unique_ptr<ModelSource> find_model(const kestrel_open_args& args);

// Threads asked for, or as many as the process may run on.
[[nodiscard]] std::uint32_t threads_of(const kestrel_open_args& args);

[[nodiscard]] kestrel_memory_needs memory_needs(const kestrel_open_args& args);
void load_borrowed(const kestrel_open_args& args);
[[nodiscard]] std::string digest_borrowed(const kestrel_open_args& args);

}  // namespace kestrel

// The handle of abi.h.
struct kestrel_engine {
    explicit kestrel_engine(const kestrel_open_args& args);
    [[nodiscard]] kestrel_model_info info() const;
    [[nodiscard]] const kestrel::ModelDims& dims() const { return dims_; }
    [[nodiscard]] kestrel::Backend& backend() { return *backend_; }
    [[nodiscard]] const kestrel::Backend& backend() const { return *backend_; }
    // The value of engine_switches()[index] that runs.
    [[nodiscard]] const char* effective_switch(std::size_t index) const;

  private:
    kestrel_engine(const kestrel_open_args& args, const kestrel::ModelSource& source);

    kestrel::ModelDims dims_;
    kestrel::SwitchValues switches_;
    kestrel::WeightLayout layout_;
    std::uint32_t threads_;
    std::uint32_t max_positions_;
    kestrel::MemoryBlock weights_;
    kestrel::MemoryBlock workspace_;
    std::unique_ptr<kestrel::Backend> backend_;
};
