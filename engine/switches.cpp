#include "engine/switches.hpp"

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "engine/error.hpp"

namespace kestrel {
namespace {

// In the order of GdnVariant and WeightFormat.
constexpr const char* gdn_delta_values[] = {"reg", "ref"};
constexpr const char* weights_values[] = {"stored", "q4_0"};

constexpr SwitchDescription descriptions[switch_count] = {
    {"VLLM_CUDA_GDN_DELTA", gdn_delta_values,
     "how the recurrent state is updated: reg keeps a tile beside the processor (k_gdn_delta_reg), ref re-reads memory (k_gdn_delta)"},
    {"KESTREL_WEIGHTS", weights_values,
     "how matrices are held: stored as the model has them, q4_0 quantised when loaded (those that are quantised already stay)"},
};

// Nothing if it is not one.
std::optional<std::size_t> value_named(const SwitchDescription& description, std::string_view text) {
    for (std::size_t i = 0; i < description.values.size(); ++i) {
        if (text == description.values[i]) return i;
    }
    return std::nullopt;
}

std::size_t switch_named(std::string_view name) {
    std::string names;
    for (std::size_t i = 0; i < switch_count; ++i) {
        if (name == descriptions[i].name) return i;
        names += (i == 0 ? "" : ", ") + std::string(descriptions[i].name);
    }
    fail(KESTREL_BAD_SWITCH, "unknown switch \"" + std::string(name) + "\"; this engine has: " + names);
}

std::size_t legal_value(const SwitchDescription& description, std::string_view text) {
    const std::optional<std::size_t> value = value_named(description, text);
    if (value) return *value;
    std::string legal;
    for (const char* one : description.values) legal += (legal.empty() ? std::string(one) + " (default)" : ", " + std::string(one));
    fail(KESTREL_BAD_SWITCH,
         "switch " + std::string(description.name) + ": illegal value \"" + std::string(text) + "\"; legal are: " + legal);
}

SwitchValues from_environment() {
    SwitchValues values;
    for (std::size_t i = 0; i < switch_count; ++i) {
        const char* text = std::getenv(descriptions[i].name);
        if (text != nullptr) values.set(i, value_named(descriptions[i], text).value_or(0));
    }
    return values;
}

}  // namespace

std::span<const SwitchDescription> switch_descriptions() {
    return descriptions;
}

SwitchValues read_switches(const kestrel_switch* list, std::size_t count) {
    if (list == nullptr) {
        if (count != 0) bad_argument("a switch list of " + std::to_string(count) + " entries is null");
        return from_environment();
    }
    SwitchValues values;
    std::array<bool, switch_count> given{};
    for (const kestrel_switch& entry : std::span(list, count)) {
        if (entry.name == nullptr || entry.value == nullptr) bad_argument("a switch has a null name or value");
        const std::size_t which = switch_named(entry.name);
        values.set(which, legal_value(descriptions[which], entry.value));
        if (given[which]) fail(KESTREL_BAD_SWITCH, "switch " + std::string(entry.name) + " is given twice");
        given[which] = true;
    }
    return values;
}

}  // namespace kestrel
