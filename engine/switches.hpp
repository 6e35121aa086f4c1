// Runtime switches: what may be set, and what was chosen.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/abi.h"

namespace kestrel {

// Values in order: the default first.
struct SwitchDescription {
    const char* name;
    std::span<const char* const> values;
    const char* description;
};

// What every engine that holds matrices in their stored types has: values in the order of WeightFormat (model_source.hpp). The common code
// obeys it and says what is in effect.
inline constexpr const char* weights_values[] = {"stored", "q4_0"};
inline constexpr SwitchDescription weights_switch{
    "KESTREL_WEIGHTS", weights_values,
    "how matrices are held: stored as the model has them, q4_0 quantised when loaded (those that are quantised already stay)"};

// Per switch of an engine, an index into its values.
using SwitchValues = std::vector<std::size_t>;

// From a switch list (null: from the environment, where only the exact text of a legal value has an effect). Throws EngineError
// (KESTREL_BAD_SWITCH) naming what is legal, KESTREL_BAD_ARGUMENT for null names or values.
[[nodiscard]] SwitchValues read_switches(std::span<const SwitchDescription> switches, const kestrel_switch* list, std::size_t count);

}  // namespace kestrel
