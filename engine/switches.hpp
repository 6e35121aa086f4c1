// Runtime switches: what may be set, and what an engine runs with.
#pragma once

#include <cstddef>
#include <span>

#include "engine/abi.h"
#include "engine/cpu/ops.hpp"

namespace kestrel {

// The only switch: which k_gdn_delta runs. Values in order: the default first.
struct SwitchDescription {
    const char* name;
    std::span<const char* const> values;
    const char* description;
};
[[nodiscard]] std::span<const SwitchDescription> switch_descriptions();

// The value's spelling.
[[nodiscard]] const char* name_of(cpu::GdnVariant variant);

// From a switch list (null: from the environment, where only the exact text "ref" selects ref). Throws EngineError
// (KESTREL_BAD_SWITCH) naming what is legal, KESTREL_BAD_ARGUMENT for null names or values.
[[nodiscard]] cpu::GdnVariant read_switches(const kestrel_switch* list, std::size_t count);

}  // namespace kestrel
