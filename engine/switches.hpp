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

// Per switch of an engine, an index into its values.
using SwitchValues = std::vector<std::size_t>;

// From a switch list (null: from the environment, where only the exact text of a legal value has an effect). Throws EngineError
// (KESTREL_BAD_SWITCH) naming what is legal, KESTREL_BAD_ARGUMENT for null names or values.
[[nodiscard]] SwitchValues read_switches(std::span<const SwitchDescription> switches, const kestrel_switch* list, std::size_t count);

}  // namespace kestrel
