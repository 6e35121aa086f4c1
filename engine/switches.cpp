#include "engine/switches.hpp"

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "engine/error.hpp"

namespace kestrel {
namespace {

constexpr const char* gdn_delta_name = "VLLM_CUDA_GDN_DELTA";
constexpr const char* gdn_delta_values[] = {"reg", "ref"};

constexpr SwitchDescription descriptions[] = {
    {gdn_delta_name, gdn_delta_values,
     "how the recurrent state is updated: reg keeps a tile beside the processor (k_gdn_delta_reg), ref re-reads memory (k_gdn_delta)"},
};

std::string legal_names() {
    std::string names;
    for (const SwitchDescription& one : descriptions) {
        if (!names.empty()) names += ", ";
        names += one.name;
    }
    return names;
}

}  // namespace

std::span<const SwitchDescription> switch_descriptions() {
    return descriptions;
}

const char* name_of(cpu::GdnVariant variant) {
    return gdn_delta_values[variant == cpu::GdnVariant::ref ? 1 : 0];
}

cpu::GdnVariant read_switches(const kestrel_switch* list, std::size_t count) {
    if (list == nullptr) {
        if (count != 0) bad_argument("a switch list of " + std::to_string(count) + " entries is null");
        const char* value = std::getenv(gdn_delta_name);
        return value != nullptr && std::string_view(value) == "ref" ? cpu::GdnVariant::ref : cpu::GdnVariant::reg;
    }
    std::optional<cpu::GdnVariant> chosen;
    for (const kestrel_switch& entry : std::span(list, count)) {
        if (entry.name == nullptr || entry.value == nullptr) bad_argument("a switch has a null name or value");
        const std::string_view name = entry.name;
        const std::string_view value = entry.value;
        if (name != gdn_delta_name) {
            fail(KESTREL_BAD_SWITCH, "unknown switch \"" + std::string(name) + "\"; this engine has: " + legal_names());
        }
        if (value != "reg" && value != "ref") {
            fail(KESTREL_BAD_SWITCH,
                 "switch " + std::string(name) + ": illegal value \"" + std::string(value) + "\"; legal are: reg (default), ref");
        }
        if (chosen) fail(KESTREL_BAD_SWITCH, "switch " + std::string(name) + " is given twice");
        chosen = value == "ref" ? cpu::GdnVariant::ref : cpu::GdnVariant::reg;
    }
    return chosen.value_or(cpu::GdnVariant::reg);
}

}  // namespace kestrel
