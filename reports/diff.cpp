#include "reports/diff.hpp"

#include <algorithm>

#include "reports/format.hpp"
#include "reports/layout.hpp"
#include "reports/place_text.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"

namespace kestrel {
namespace {

std::vector<Place> real_places(std::vector<Place> places) {
    std::erase_if(places, [](const Place& place) { return place.kind == PlaceKind::none; });
    return places;
}

}  // namespace

std::string place_text(const Place& place) {
    if (place.kind == PlaceKind::none) return "none: the arms do not differ";
    std::string text = std::string(name_of(place.kind)) + " " + place.name + ": " + place.base + " -> " + place.candidate;
    if (place.changed_objects.empty()) return text;
    text += "; changed objects:";
    for (const std::string& object : place.changed_objects) text += " " + object;
    return text;
}

std::string switches_text(const std::vector<SwitchSetting>& switches) {
    if (switches.empty()) return "none";
    std::string text;
    for (const SwitchSetting& setting : switches) text += (text.empty() ? "" : " ") + setting.name + "=" + setting.value;
    return text;
}

std::string diff_text(const DiffSide& base, const DiffSide& candidate, const std::vector<Place>& places) {
    const std::vector<Place> real = real_places(places);
    std::string text = field("base", base.name) + field("", base.sha256) + field("candidate", candidate.name) + field("", candidate.sha256);
    if (real.empty()) return text + "Identical: nothing that is built into them differs.\n";
    if (real.size() == 1) {
        return text + "One place:\n" + wrapped("  - ", place_text(real.front())) + "The two can be compared:\n" +
               wrapped("  ", "kestrel-ab run --base " + base.name + " --candidate " + candidate.name);
    }
    text += "Not comparable: they differ in " + count_text(static_cast<std::int64_t>(real.size()), "place") + ", and one is the most.\n";
    for (const Place& place : real) text += wrapped("  - ", place_text(place));
    return text + "Build two that differ in one of these, and compare those; then the next.\n";
}

nlohmann::json diff_json(const DiffSide& base, const DiffSide& candidate, const std::vector<Place>& places) {
    const std::vector<Place> real = real_places(places);
    const char* answer = real.empty() ? "identical" : real.size() == 1 ? "one place" : "not comparable";
    return {{"format", 1},
            {"kind", "diff"},
            {"base", {{"name", base.name}, {"sha256", base.sha256}}},
            {"candidate", {{"name", candidate.name}, {"sha256", candidate.sha256}}},
            {"places", real},
            {"answer", answer}};
}

}  // namespace kestrel
