// An opened model: its memory and its decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/abi.h"
#include "engine/cpu/decoder.hpp"
#include "engine/memory.hpp"
#include "engine/model_source.hpp"
#include "engine/switches.hpp"
#include "engine/weights.hpp"

namespace kestrel {

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

    const kestrel::SwitchValues switches;

  private:
    kestrel_engine(const kestrel_open_args& args, const kestrel::ModelSource& source);

    kestrel::WeightLayout layout_;
    kestrel::MemoryBlock weights_;
    kestrel::MemoryBlock workspace_;

  public:
    kestrel::cpu::Decoder decoder;
};
