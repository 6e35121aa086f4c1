// In how many places two builds differ.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

struct DiffSide {
    std::string name;  // as the user named it
    std::string sha256;
};

// No place (or only ones of kind none): identical. One: the place. More: all of them, and that the two cannot be compared.
[[nodiscard]] std::string diff_text(const DiffSide& base, const DiffSide& candidate, const std::vector<Place>& places);

// {"format": 1, "kind": "diff", "base": {"name", "sha256"}, "candidate": ..., "places": [...],
//  "answer": "identical" | "one place" | "not comparable"}
[[nodiscard]] nlohmann::json diff_json(const DiffSide& base, const DiffSide& candidate, const std::vector<Place>& places);

}  // namespace kestrel
