#include "engine/manifest/normalise.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace kestrel::build {

namespace {

constexpr std::string_view build_mark = "<build>";

using Mark = std::pair<std::string, std::string_view>;  // root, what stands for it

// Longest root first: one may lie inside the other.
std::array<Mark, 2> marks(const Roots& roots) {
    std::array<Mark, 2> result{Mark{roots.source.string(), "."}, Mark{roots.build.string(), build_mark}};
    if (result[0].first.size() < result[1].first.size()) std::swap(result[0], result[1]);
    return result;
}

bool ends_component(std::string_view text, std::size_t at) {
    return at >= text.size() || std::string_view("/=,:").find(text[at]) != std::string_view::npos;
}

std::optional<Mark> root_at(std::string_view text, std::size_t at, const std::array<Mark, 2>& candidates) {
    for (const Mark& mark : candidates) {
        if (text.substr(at, mark.first.size()) == mark.first && ends_component(text, at + mark.first.size())) return mark;
    }
    return std::nullopt;
}

}  // namespace

std::string normalised_path(const std::filesystem::path& path, const Roots& roots) {
    std::string text = path.lexically_normal().string();
    const std::optional<Mark> mark = root_at(text, 0, marks(roots));
    if (!mark) return text;
    const std::string rest = text.substr(std::min(text.size(), mark->first.size() + 1));
    return mark->second == build_mark ? std::string(build_mark) + "/" + rest : rest;
}

std::string normalised_argument(std::string_view argument, const Roots& roots) {
    const std::array<Mark, 2> candidates = marks(roots);
    std::string result;
    bool path_may_start = true;  // until the first slash, then after each separator
    for (std::size_t i = 0; i < argument.size();) {
        if (argument[i] == '/' && path_may_start) {
            if (const std::optional<Mark> mark = root_at(argument, i, candidates)) {
                result += mark->second;
                i += mark->first.size();
                path_may_start = false;
                continue;
            }
        }
        if (argument[i] == '/') path_may_start = false;
        if (argument[i] == '=' || argument[i] == ',' || argument[i] == ':') path_may_start = true;
        result += argument[i++];
    }
    return result;
}

std::vector<std::string> normalised_command(const std::vector<std::string>& argv, const Roots& roots) {
    constexpr std::array<std::string_view, 4> with_value{"-o", "-MF", "-MT", "-MQ"};
    std::vector<std::string> result{std::filesystem::path(argv.front()).filename() == "nvcc" ? "nvcc" : "c++"};
    for (std::size_t i = 1; i < argv.size(); ++i) {
        if (argv[i] == "-MD" || argv[i] == "-MMD") continue;
        if (std::find(with_value.begin(), with_value.end(), argv[i]) != with_value.end()) {
            ++i;
            continue;
        }
        result.push_back(normalised_argument(argv[i], roots));
    }
    return result;
}

}  // namespace kestrel::build
