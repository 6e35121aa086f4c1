#include "runner/identity/manifest.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "runner/record/error.hpp"

namespace kestrel {

namespace {

using nlohmann::json;

constexpr int known_format = 1;

[[noreturn]] void refuse(const std::string& origin, const std::string& why) {
    throw Error(ExitCode::not_comparable, "the manifest in " + origin + " cannot be used: " + why + ". Build the library again.");
}

std::string hash_of(const json& value, const std::string& what) {
    auto text = value.get<std::string>();
    const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
    if (text.size() != 64 || !digits) throw std::invalid_argument("the hash of " + what + " is not a SHA-256");
    return text;
}

std::map<std::string, std::string> hashes_of(const json& object) {
    std::map<std::string, std::string> hashes;
    for (const auto& [name, value] : object.get_ref<const json::object_t&>()) hashes[name] = hash_of(value, name);
    return hashes;
}

Manifest from_json(const json& root) {
    if (root.at("format").get<int>() != known_format) {
        throw std::invalid_argument("its format is " + root.at("format").dump() + ", this program knows format " +
                                    std::to_string(known_format));
    }
    Manifest manifest;
    manifest.engine = root.at("engine").get<std::string>();
    manifest.target = root.at("target").get<std::string>();
    manifest.files = hashes_of(root.at("files"));
    std::set<std::string> sources;
    for (const json& value : root.at("units").get_ref<const json::array_t&>()) {
        ManifestUnit unit{value.at("source").get<std::string>(), value.at("argv").get<std::vector<std::string>>(), {}};
        unit.object_sha256 = hash_of(value.at("object_sha256"), "the object of " + unit.source);
        if (!sources.insert(unit.source).second) throw std::invalid_argument(unit.source + " is compiled twice");
        if (!manifest.files.contains(unit.source)) throw std::invalid_argument(unit.source + " is compiled but is not among the files");
        if (unit.argv.empty()) throw std::invalid_argument("the compile command of " + unit.source + " is empty");
        manifest.units.push_back(std::move(unit));
    }
    manifest.link_argv = root.at("link").at("argv").get<std::vector<std::string>>();
    manifest.link_inputs = hashes_of(root.at("link").at("inputs"));
    for (const auto& [name, value] : root.at("tools").get_ref<const json::object_t&>()) {
        manifest.tools[name] = {value.at("version").get<std::string>(), hash_of(value.at("sha256"), name)};
    }
    if (manifest.engine.empty() || manifest.units.empty() || manifest.link_argv.empty() || manifest.tools.empty()) {
        throw std::invalid_argument("engine, units, link command or tools are empty");
    }
    return manifest;
}

}  // namespace

Manifest parse_manifest(std::string_view text, const std::string& origin) {
    try {
        return from_json(json::parse(text));
    } catch (const json::exception& error) {
        refuse(origin, error.what());
    } catch (const std::invalid_argument& error) {
        refuse(origin, error.what());
    }
}

}  // namespace kestrel
