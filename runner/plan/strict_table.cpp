#include "runner/plan/strict_table.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "runner/record/error.hpp"

namespace kestrel {
namespace {

std::string shown(double value) {
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    return {buffer, end};
}

}  // namespace

StrictTable::StrictTable(const toml::table& table, const std::string& file, const std::string& section,
                         std::initializer_list<std::string_view> known)
    : table_(&table), where_(file + (section.empty() ? "" : " [" + section + "]")) {
    for (const auto& [key, value] : table) {
        if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
        std::string allowed;
        for (const std::string_view name : known) allowed += (allowed.empty() ? "" : ", ") + std::string(name);
        throw Error(ExitCode::usage, where_ + ": unknown key '" + std::string(key.str()) + "'; allowed: " + allowed);
    }
}

void StrictTable::refuse(std::string_view key, const std::string& expected) const {
    throw Error(ExitCode::usage, where_ + ": '" + std::string(key) + (has(key) ? "' must be " : "' is missing; it must be ") + expected);
}

std::string StrictTable::text(std::string_view key) const {
    const auto value = (*table_)[key].value_exact<std::string>();
    if (!value || value->empty()) refuse(key, "a text that is not empty");
    return *value;
}

std::string StrictTable::text(std::string_view key, const std::string& fallback) const {
    return has(key) ? text(key) : fallback;
}

int StrictTable::integer(std::string_view key, int fallback, int least, int most) const {
    if (!has(key)) return fallback;
    const auto value = (*table_)[key].value_exact<std::int64_t>();
    if (!value || *value < least || *value > most) refuse(key, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return static_cast<int>(*value);
}

double StrictTable::number(std::string_view key, double least, double most) const {
    const toml::node_view<const toml::node> node = (*table_)[key];
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value || !(*value >= least && *value <= most)) refuse(key, "a number from " + shown(least) + " to " + shown(most));
    return *value;
}

double StrictTable::number(std::string_view key, double fallback, double least, double most) const {
    return has(key) ? number(key, least, most) : fallback;
}

const toml::table& StrictTable::table(std::string_view key) const {
    const toml::table* inner = (*table_)[key].as_table();
    if (inner == nullptr) throw Error(ExitCode::usage, where_ + ": section [" + std::string(key) + "] is missing");
    return *inner;
}

}  // namespace kestrel
