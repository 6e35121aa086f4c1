// What there is to run, and what has been run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

struct Inventory {
    std::vector<std::string> experiments;
    std::vector<std::string> models;
    std::vector<std::string> engines;
    std::vector<SessionSummary> sessions;
    std::string database_path;
};

[[nodiscard]] std::string inventory_text(const Inventory& inventory);

// {"format": 1, "kind": "list", "experiments": [...], "models": [...], "engines": [...], "sessions": [summary...], "database": path}
[[nodiscard]] nlohmann::json inventory_json(const Inventory& inventory);

}  // namespace kestrel
