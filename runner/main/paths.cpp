#include "runner/main/paths.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runner/platform/host.hpp"
#include "runner/record/error.hpp"

namespace kestrel::cli {
namespace {

namespace fs = std::filesystem;

fs::path prefix() {
    return fs::path(platform::executable_path()).parent_path().parent_path();
}

Found list_folder(const fs::path& folder, const std::string& before, const std::string& ending) {
    Found found;
    std::error_code missing;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, missing)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(before) || !name.ends_with(ending) || name.size() <= before.size() + ending.size()) continue;
        found.emplace_back(name.substr(before.size(), name.size() - before.size() - ending.size()), entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::string resolve(const std::string& wanted, const char* what, const Found& known, const std::string& folder) {
    for (const auto& [name, path] : known) {
        if (name == wanted) return path;
    }
    std::error_code ignored;
    if (!wanted.empty() && fs::exists(wanted, ignored)) return fs::absolute(wanted).lexically_normal().string();
    std::string names;
    for (const auto& [name, path] : known) names += (names.empty() ? "" : ", ") + name;
    throw Error(ExitCode::usage, std::string("no ") + what + " '" + wanted + "': neither a file nor one of those in " + folder + " (" +
                                     (names.empty() ? "none" : names) + ")");
}

}  // namespace

std::string database_path(const std::string& option) {
    if (!option.empty()) return fs::absolute(option).string();
    if (const char* named = std::getenv("KESTREL_AB_DB"); named != nullptr && *named != '\0') return fs::absolute(named).string();
    return platform::user_state_directory() + "/kestrel-ab/kestrel-ab.db";
}

std::string work_directory(const std::string& database) {
    return database + ".d";
}

std::string library_directory() {
    return (prefix() / "lib").string();
}

std::string config_directory() {
    return (prefix() / "share" / "kestrel-ab").string();
}

Found find_engines() {
    Found all = list_folder(library_directory(), "lib", ".so");
    // Support libraries of a bundle lie in the same folder; engines carry this project's prefix.
    std::erase_if(all, [](const auto& entry) { return !entry.first.starts_with("kestrel_"); });
    return all;
}

Found find_models() {
    return list_folder(config_directory() + "/models", "", ".toml");
}

Found find_experiments() {
    return list_folder(config_directory() + "/experiments", "", ".toml");
}

Found find_policies() {
    return list_folder(config_directory() + "/policies", "", ".toml");
}

std::string engine_path(const std::string& name_or_path) {
    return resolve(name_or_path, "engine", find_engines(), library_directory());
}

std::string model_path(const std::string& name_or_path) {
    return resolve(name_or_path, "model", find_models(), config_directory() + "/models");
}

std::string experiment_path(const std::string& name_or_path) {
    return resolve(name_or_path, "experiment", find_experiments(), config_directory() + "/experiments");
}

std::string policy_path(const std::string& name_or_path) {
    return resolve(name_or_path, "policy", find_policies(), config_directory() + "/policies");
}

}  // namespace kestrel::cli
