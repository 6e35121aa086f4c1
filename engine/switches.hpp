// Runtime switches: what may be set, and what an engine runs with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/abi.h"
#include "engine/cpu/ops.hpp"
#include "engine/model_source.hpp"

namespace kestrel {

// In the order of switch_descriptions().
enum class Switch : std::uint8_t { gdn_delta, weights };
inline constexpr std::size_t switch_count = 2;

struct SwitchDescription {
    const char* name;
    std::span<const char* const> values;  // the default first
    const char* description;
};
[[nodiscard]] std::span<const SwitchDescription> switch_descriptions();

// One value of each switch.
class SwitchValues {
  public:
    [[nodiscard]] cpu::GdnVariant gdn() const { return static_cast<cpu::GdnVariant>(at(Switch::gdn_delta)); }
    [[nodiscard]] WeightFormat weights() const { return static_cast<WeightFormat>(at(Switch::weights)); }
    // The value's spelling; `index` as in switch_descriptions().
    [[nodiscard]] const char* name(std::size_t index) const { return switch_descriptions()[index].values[values_[index]]; }
    void set(std::size_t index, std::size_t value) { values_[index] = value; }

  private:
    [[nodiscard]] std::size_t at(Switch which) const { return values_[static_cast<std::size_t>(which)]; }
    std::array<std::size_t, switch_count> values_{};
};

// From a switch list (null: from the environment, where everything but the exact text of a value is the default). Throws EngineError
// (KESTREL_BAD_SWITCH) naming what is legal, KESTREL_BAD_ARGUMENT for null names or values.
[[nodiscard]] SwitchValues read_switches(const kestrel_switch* list, std::size_t count);

}  // namespace kestrel
