// What tells one engine library from another: how it decodes, and in which memory. Everything else (the C interface, model files,
// weights, checks of arguments) is shared. A library links the common sources and one backend's, which define backend_library().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/abi.h"
#include "engine/memory.hpp"
#include "engine/model_config.hpp"
#include "engine/operators.hpp"
#include "engine/switches.hpp"
#include "engine/weights.hpp"

namespace kestrel {

// A model opened for decoding. All functions throw EngineError; none returns before its result is on the host.
class Backend {
  public:
    Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    virtual ~Backend() = default;

    // Back to position 0 with zero state.
    virtual void reset() = 0;

    // Feeds `token` at the next position; returns the greedy next token, the lowest among equals. Throws KESTREL_BAD_ARGUMENT, with
    // nothing changed, if the token is not in the vocabulary or the key/value cache is full.
    virtual std::int32_t decode(std::int32_t token) = 0;

    // Of the last token; `out` has exactly vocab, or hidden, elements. Throw KESTREL_BAD_ARGUMENT if none was decoded since opening,
    // reset or restore.
    virtual void read_logits(std::span<float> out) const = 0;
    virtual void read_hidden(std::span<float> out) const = 0;
    virtual void read_final_norm(std::span<float> out) const = 0;
    // [v_heads][k_dim][v_dim] of `layer`, which has a recurrent state: the caller has checked.
    virtual void read_gdn_state(std::uint32_t layer, std::span<float> out) const = 0;

    // The sequence as bytes on the host; equal sequences give equal bytes. Both spans have saved_bytes(). restore throws
    // KESTREL_BAD_ARGUMENT, with nothing changed, if the bytes are another model's or capacity's.
    [[nodiscard]] virtual std::size_t saved_bytes() const = 0;
    virtual void save(std::span<std::byte> out) const = 0;
    virtual void restore(std::span<const std::byte> in) = 0;

    // The value that runs, one of switches[index].values: not what was asked for, if the two differ.
    [[nodiscard]] virtual const char* effective_switch(std::size_t index) const = 0;
};

// What a backend is opened with. Weights and workspace are in the backend's memory, aligned, and outlive it.
struct Opening {
    const ModelDims& dims;
    const WeightLayout& layout;
    std::byte* weights;
    std::byte* workspace;  // zeroed or left over from another engine: nothing may depend on which
    std::uint32_t threads;
    std::uint32_t max_positions;
    SwitchValues switches;  // index into values, per switch
};

// How a backend holds weights, where that is not a host block as WeightLayout says. Either in memory of its own, with put and get, or in
// host memory in which a block is rearranged where it lies, so that a model is never there twice, with arrange and restore.
struct WeightArrangement {
    std::uint64_t (*bytes)(const WeightLayout& layout);
    // Equal only for blocks that are interchangeable; at most 63 characters.
    std::string (*id)(const WeightLayout& layout);
    // From a filled host block of layout.bytes(), and back to the same values.
    void (*put)(const WeightLayout& layout, const std::byte* host, std::byte* weights) = nullptr;
    void (*get)(const WeightLayout& layout, const std::byte* weights, std::byte* host) = nullptr;
    // From a block as WeightLayout says, in place; and the stored bytes of a tensor's elements, as it was before.
    void (*arrange)(const WeightLayout& layout, std::uint32_t threads, std::byte* weights) = nullptr;
    ReadStored restore = nullptr;
};

struct BackendLibrary {
    const char* name;  // of the engine, the same for all its variants
    std::span<const SwitchDescription> switches;
    kestrel_memory_kind memory_kind;
    std::size_t alignment;  // bytes, a power of two, of weights and workspace
    // Throws KESTREL_OUT_OF_MEMORY naming `purpose`, bytes needed and available.
    MemoryBlock (*allocate)(std::uint64_t bytes, const std::string& purpose);
    const WeightArrangement* arrangement;  // null: weights are loaded in place
    std::uint64_t (*workspace_bytes)(const ModelDims& dims, std::uint32_t max_positions);
    std::size_t state_element_bytes;  // of the recurrent state
    std::unique_ptr<Backend> (*open)(const Opening& opening);
    const BackendOperators* operators;
    // Tables of capabilities that only this backend has (allocate.v1, graph.v1); null if it has none.
    const void* (*capability)(std::string_view name);
};

// Constant, and the same in every call.
[[nodiscard]] const BackendLibrary& backend_library();

}  // namespace kestrel
