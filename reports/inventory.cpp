#include "reports/inventory.hpp"

#include "reports/history.hpp"
#include "reports/layout.hpp"

namespace kestrel {
namespace {

std::string joined(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all.empty() ? "none" : all;
}

}  // namespace

std::string inventory_text(const Inventory& inventory) {
    return field("experiments", joined(inventory.experiments)) + field("models", joined(inventory.models)) +
           field("engines", joined(inventory.engines)) + field("database", inventory.database_path) + "\n" + list_text(inventory.sessions);
}

nlohmann::json inventory_json(const Inventory& inventory) {
    nlohmann::json j = list_json(inventory.sessions);
    j["experiments"] = inventory.experiments;
    j["models"] = inventory.models;
    j["engines"] = inventory.engines;
    j["database"] = inventory.database_path;
    return j;
}

}  // namespace kestrel
