#include "engine/switches.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/error.hpp"

namespace kestrel {
namespace {

constexpr std::size_t not_given = SIZE_MAX;

std::string legal_names(std::span<const SwitchDescription> switches) {
    if (switches.empty()) return "this engine has none";
    std::string names = "this engine has: ";
    for (std::size_t i = 0; i < switches.size(); ++i) names += (i > 0 ? ", " : "") + std::string(switches[i].name);
    return names;
}

std::string legal_values(const SwitchDescription& one) {
    std::string values;
    for (std::size_t i = 0; i < one.values.size(); ++i)
        values += (i == 0 ? "" : ", ") + std::string(one.values[i]) + (i == 0 ? " (default)" : "");
    return values;
}

// The index of a legal value, or the number of values.
std::size_t index_of(const SwitchDescription& one, std::string_view value) {
    const auto found = std::find_if(one.values.begin(), one.values.end(), [&](const char* legal) { return value == legal; });
    return static_cast<std::size_t>(found - one.values.begin());
}

SwitchValues from_environment(std::span<const SwitchDescription> switches) {
    SwitchValues chosen;
    for (const SwitchDescription& one : switches) {
        const char* value = std::getenv(one.name);
        const std::size_t index = value != nullptr ? index_of(one, value) : 0;
        chosen.push_back(index < one.values.size() ? index : 0);
    }
    return chosen;
}

}  // namespace

SwitchValues read_switches(std::span<const SwitchDescription> switches, const kestrel_switch* list, std::size_t count) {
    if (list == nullptr) {
        if (count != 0) bad_argument("a switch list of " + std::to_string(count) + " entries is null");
        return from_environment(switches);
    }
    SwitchValues chosen(switches.size(), not_given);
    for (const kestrel_switch& entry : std::span(list, count)) {
        if (entry.name == nullptr || entry.value == nullptr) bad_argument("a switch has a null name or value");
        const std::string name = entry.name;
        const auto known = std::find_if(switches.begin(), switches.end(), [&](const SwitchDescription& one) { return name == one.name; });
        if (known == switches.end()) fail(KESTREL_BAD_SWITCH, "unknown switch \"" + name + "\"; " + legal_names(switches));
        const std::size_t index = index_of(*known, entry.value);
        if (index == known->values.size()) {
            fail(KESTREL_BAD_SWITCH,
                 "switch " + name + ": illegal value \"" + std::string(entry.value) + "\"; legal are: " + legal_values(*known));
        }
        std::size_t& slot = chosen[static_cast<std::size_t>(known - switches.begin())];
        if (slot != not_given) fail(KESTREL_BAD_SWITCH, "switch " + name + " is given twice");
        slot = index;
    }
    std::replace(chosen.begin(), chosen.end(), not_given, std::size_t{0});
    return chosen;
}

}  // namespace kestrel
