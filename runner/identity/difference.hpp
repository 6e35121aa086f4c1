// "Exactly one place": what differs between two builds and their switches, and the refusal if that is more than one thing.
#pragma once

#include <string>
#include <vector>

#include "runner/identity/manifest.hpp"
#include "runner/record/record.hpp"

namespace kestrel {

struct Difference {
    std::vector<Place> places;                        // causes, sorted by kind and name; the same flag in many units is one
    std::vector<std::string> changed_objects;         // sources whose object differs, in link order
    std::vector<std::string> added_or_removed_units;  // "+ source" or "- source"
    std::vector<std::string> consequences;            // "+ file" or "- file": read on one side only, because of a place
    bool link_or_tools = false;  // a link flag, link input or tool is among the places: it can act without changing an object
};

// Compares two builds and the switches they are run with. Defines count by name and change, over all units together; other
// flags by name; files, link inputs and tools each by themselves; switches by name.
//
// A file that only one side read is a place of its own unless something else explains it: a changed define or flag explains any
// such file, an edited source explains system files. Throws Error(usage) if one switch is set twice on one side.
[[nodiscard]] Difference compare(const Manifest& base, const std::vector<SwitchSetting>& base_switches, const Manifest& candidate,
                                 const std::vector<SwitchSetting>& candidate_switches);

// The only place, with the objects it changed; kind `none` if nothing differs. Throws Error(not_comparable) that lists all places,
// one per line, if there are more, or if objects differ although nothing that went into them does.
[[nodiscard]] Place the_one_place(const Difference& difference);

// Throws Error(not_comparable) if the libraries' bytes differ and no place in the build explains it (a runtime switch does not).
void require_explained(const Difference& difference, const std::string& base_sha256, const std::string& candidate_sha256);

// True if something in the build differs but every object is the same, and neither linker nor tools changed: "no effect".
[[nodiscard]] bool no_effect(const Difference& difference);

// One line for people: "define VLLM_GEMV_AB_BASELINE: (unset) -> 1".
[[nodiscard]] std::string describe(const Place& place);

}  // namespace kestrel
