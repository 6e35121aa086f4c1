#include "runner/main/cache_settings.hpp"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "runner/record/error.hpp"

namespace kestrel::cli {
namespace {

std::string setting(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

std::string folder() {
    if (const std::string named = setting("KESTREL_AB_CACHE"); !named.empty()) {
        std::string path = std::filesystem::absolute(named).lexically_normal().string();
        if (path.size() > 1 && path.ends_with('/')) path.pop_back();
        return path;
    }
    // The XDG rules: a path that is not absolute does not count.
    if (const std::string cache = setting("XDG_CACHE_HOME"); cache.starts_with('/')) return cache + "/kestrel-ab";
    if (const std::string home = setting("HOME"); home.starts_with('/')) return home + "/.cache/kestrel-ab";
    return "";
}

}  // namespace

std::uint64_t parse_size(const std::string& text, const std::string& what) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, problem] = std::from_chars(text.data(), end, number);
    std::string unit(rest, end);
    if (unit.ends_with("iB")) {
        unit.resize(unit.size() - 2);
    } else if (unit.ends_with("B")) {
        unit.resize(unit.size() - 1);
    }
    const std::string units = "KMGT";
    const std::size_t at = unit.size() == 1 ? units.find(unit) : std::string::npos;
    const int shift = unit.empty() ? 0 : 10 * (static_cast<int>(at) + 1);
    if (problem != std::errc{} || (!unit.empty() && at == std::string::npos) ||
        number > (std::numeric_limits<std::uint64_t>::max() >> shift)) {
        throw Error(ExitCode::usage, what + " is '" + text + "'; expected a size such as 64GiB or 67108864");
    }
    return number << shift;
}

session::CacheSettings cache_settings() {
    session::CacheSettings settings;
    settings.folder = folder();
    if (const std::string limit = setting("KESTREL_AB_CACHE_LIMIT"); !limit.empty()) {
        settings.limit = parse_size(limit, "KESTREL_AB_CACHE_LIMIT");
    }
    if (const std::string minimum = setting("KESTREL_AB_CACHE_MINIMUM"); !minimum.empty()) {
        settings.minimum = parse_size(minimum, "KESTREL_AB_CACHE_MINIMUM");
    }
    return settings;
}

}  // namespace kestrel::cli
