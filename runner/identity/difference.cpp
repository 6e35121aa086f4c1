#include "runner/identity/difference.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "runner/identity/command_flags.hpp"
#include "runner/record/error.hpp"
#include "runner/record/names.hpp"

namespace kestrel {

namespace {

struct PlaceOrder {
    bool operator()(const Place& a, const Place& b) const {
        return std::tie(a.kind, a.name, a.base, a.candidate) < std::tie(b.kind, b.name, b.base, b.candidate);
    }
};

using Places = std::set<Place, PlaceOrder>;  // the same change in many units is there once

// Calls visit(name, base value or null, candidate value or null) for each name whose values differ.
template <typename Value, typename Visit>
void for_each_change(const std::map<std::string, Value>& base, const std::map<std::string, Value>& candidate, Visit visit) {
    for (const auto& [name, value] : base) {
        const auto other = candidate.find(name);
        if (other == candidate.end()) {
            visit(name, &value, static_cast<const Value*>(nullptr));
        } else if (!(other->second == value)) {
            visit(name, &value, &other->second);
        }
    }
    for (const auto& [name, value] : candidate) {
        if (!base.contains(name)) visit(name, static_cast<const Value*>(nullptr), &value);
    }
}

std::string or_unset(const std::string* value) {
    return value != nullptr ? *value : unset_value;
}

std::string one_sided(const std::string* base, const std::string& name) {
    return (base == nullptr ? "+ " : "- ") + name;
}

void compare_commands(const ManifestUnit& base, const ManifestUnit& candidate, Places& places) {
    const CommandFlags before = command_flags(base.argv, base.source);
    const CommandFlags after = command_flags(candidate.argv, candidate.source);
    for_each_change(before.defines, after.defines, [&](const std::string& name, const std::string* from, const std::string* to) {
        places.insert({PlaceKind::define, name, or_unset(from), or_unset(to), {}});
    });
    for (const FlagChange& change : flag_changes(before.others, after.others)) {
        places.insert({PlaceKind::flag, change.name, change.base, change.candidate, {}});
    }
}

void compare_units(const Manifest& base, const Manifest& candidate, Places& places, Difference& out) {
    std::map<std::string, std::reference_wrapper<const ManifestUnit>> others;
    for (const ManifestUnit& unit : candidate.units) others.emplace(unit.source, unit);
    std::vector<std::string> common_before;
    for (const ManifestUnit& unit : base.units) {
        const auto other = others.find(unit.source);
        if (other == others.end()) {
            out.added_or_removed_units.push_back("- " + unit.source);
            places.insert({PlaceKind::source_file, unit.source, "compiled and linked", unset_value, {}});
            continue;
        }
        common_before.push_back(unit.source);
        compare_commands(unit, other->second, places);
        if (unit.object_sha256 != other->second.get().object_sha256) out.changed_objects.push_back(unit.source);
    }
    std::vector<std::string> common_after;
    for (const ManifestUnit& unit : candidate.units) {
        if (std::find(common_before.begin(), common_before.end(), unit.source) != common_before.end()) {
            common_after.push_back(unit.source);
            continue;
        }
        out.added_or_removed_units.push_back("+ " + unit.source);
        places.insert({PlaceKind::source_file, unit.source, unset_value, "compiled and linked", {}});
    }
    if (common_before != common_after) {
        out.link_or_tools = true;
        places.insert({PlaceKind::flag, "link order of objects", common_before.front() + " ...", common_after.front() + " ...", {}});
    }
}

void compare_files(const Manifest& base, const Manifest& candidate, Places& places, Difference& out) {
    const bool selected = std::any_of(places.begin(), places.end(),
                                      [](const Place& place) { return place.kind == PlaceKind::define || place.kind == PlaceKind::flag; });
    std::vector<Place> only_one_side;
    for_each_change(base.files, candidate.files, [&](const std::string& name, const std::string* from, const std::string* to) {
        const Place place{PlaceKind::source_file, name, or_unset(from), or_unset(to), {}};
        if (from != nullptr && to != nullptr) {
            places.insert(place);
        } else {
            only_one_side.push_back(place);
        }
    });
    const bool explained = !places.empty();
    for (const Place& place : only_one_side) {
        const std::string mark = (place.base == unset_value ? "+ " : "- ") + place.name;
        const auto& units = out.added_or_removed_units;
        if (std::find(units.begin(), units.end(), mark) != units.end()) continue;  // already a place, as a unit
        const bool system_file = place.name.starts_with('/');
        if (selected || (system_file && explained)) {
            out.consequences.push_back(mark);
        } else {
            places.insert(place);
        }
    }
}

void compare_link(const Manifest& base, const Manifest& candidate, Places& places, Difference& out) {
    // Defines in the link command are leftovers of flags shared with the compiler; they do nothing there.
    const auto before = command_flags(base.link_argv, "").others;
    const auto after = command_flags(candidate.link_argv, "").others;
    for (const FlagChange& change : flag_changes(before, after)) {
        // A flag that compiler and linker both get (-flto, -pthread) is one flag.
        if (places.contains({PlaceKind::flag, change.name, change.base, change.candidate, {}})) continue;
        places.insert({PlaceKind::flag, "link " + change.name, change.base, change.candidate, {}});
        out.link_or_tools = true;
    }
    const bool explained = !places.empty();
    for_each_change(base.link_inputs, candidate.link_inputs, [&](const std::string& name, const std::string* from, const std::string* to) {
        if ((from == nullptr || to == nullptr) && explained) {
            out.consequences.push_back(one_sided(from, name));
            return;
        }
        places.insert({PlaceKind::source_file, "link input " + name, or_unset(from), or_unset(to), {}});
        out.link_or_tools = true;
    });
}

void compare_tools(const Manifest& base, const Manifest& candidate, Places& places, Difference& out) {
    const auto hash_by_name = [](const std::map<std::string, ManifestTool>& tools) {
        std::map<std::string, std::string> hashes;
        for (const auto& [name, tool] : tools) hashes[name] = tool.sha256;
        return hashes;
    };
    const auto shown = [](const std::map<std::string, ManifestTool>& tools, const std::string& name) {
        const auto tool = tools.find(name);
        return tool == tools.end() ? unset_value : tool->second.version + " (" + tool->second.sha256.substr(0, 12) + ")";
    };
    for_each_change(hash_by_name(base.tools), hash_by_name(candidate.tools),
                    [&](const std::string& name, const std::string*, const std::string*) {
                        places.insert({PlaceKind::flag, "tool " + name, shown(base.tools, name), shown(candidate.tools, name), {}});
                        out.link_or_tools = true;
                    });
    if (base.engine != candidate.engine) places.insert({PlaceKind::flag, "engine", base.engine, candidate.engine, {}});
    if (base.target != candidate.target) places.insert({PlaceKind::flag, "target", base.target, candidate.target, {}});
}

std::map<std::string, std::string> by_name(const std::vector<SwitchSetting>& switches, const char* arm) {
    std::map<std::string, std::string> values;
    for (const SwitchSetting& setting : switches) {
        if (!values.emplace(setting.name, setting.value).second) {
            throw Error(ExitCode::usage, "switch " + setting.name + " is set twice for the " + arm + "; set it once");
        }
    }
    return values;
}

bool build_differs(const Difference& difference) {
    return std::any_of(difference.places.begin(), difference.places.end(),
                       [](const Place& place) { return place.kind != PlaceKind::runtime_switch; });
}

std::string shortened(const std::string& value) {
    const bool hash = value.size() == 64 && value.find_first_not_of("0123456789abcdef") == std::string::npos;
    return hash ? value.substr(0, 12) : value;
}

}  // namespace

Difference compare(const Manifest& base, const std::vector<SwitchSetting>& base_switches, const Manifest& candidate,
                   const std::vector<SwitchSetting>& candidate_switches) {
    Difference out;
    Places places;
    compare_units(base, candidate, places, out);
    compare_files(base, candidate, places, out);
    compare_link(base, candidate, places, out);
    compare_tools(base, candidate, places, out);
    for_each_change(by_name(base_switches, "base"), by_name(candidate_switches, "candidate"),
                    [&](const std::string& name, const std::string* from, const std::string* to) {
                        places.insert({PlaceKind::runtime_switch, name, or_unset(from), or_unset(to), {}});
                    });
    out.places.assign(places.begin(), places.end());
    return out;
}

Place the_one_place(const Difference& difference) {
    if (difference.places.size() > 1) {
        std::string message = "the two arms differ in " + std::to_string(difference.places.size()) +
                              " places, so no difference in time could be put down to one of them:";
        for (const Place& place : difference.places) message += "\n  " + describe(place);
        throw Error(ExitCode::not_comparable, message + "\nCompare builds that differ in exactly one.");
    }
    if (!build_differs(difference) && !difference.changed_objects.empty()) {
        std::string message = "objects differ although the manifests name the same sources, flags and tools:";
        for (const std::string& object : difference.changed_objects) message += "\n  " + object;
        throw Error(ExitCode::not_comparable, message + "\nBuild both libraries again; if this remains, the build does not reproduce.");
    }
    if (difference.places.empty()) return {};
    Place place = difference.places.front();
    place.changed_objects = difference.changed_objects;
    return place;
}

void require_explained(const Difference& difference, const std::string& base_sha256, const std::string& candidate_sha256) {
    if (base_sha256 == candidate_sha256 || build_differs(difference)) return;
    throw Error(ExitCode::not_comparable, "the libraries differ (" + base_sha256 + " and " + candidate_sha256 +
                                              ") but their manifests name the same sources, flags and tools. One was changed after the "
                                              "build, or the build does not reproduce; build both again.");
}

bool no_effect(const Difference& difference) {
    const bool only_build = std::none_of(difference.places.begin(), difference.places.end(),
                                         [](const Place& place) { return place.kind == PlaceKind::runtime_switch; });
    return !difference.places.empty() && only_build && !difference.link_or_tools && difference.changed_objects.empty() &&
           difference.added_or_removed_units.empty();
}

std::string describe(const Place& place) {
    if (place.kind == PlaceKind::none) return "no difference";
    return std::string(name_of(place.kind)) + " " + place.name + ": " + shortened(place.base) + " -> " + shortened(place.candidate);
}

}  // namespace kestrel
