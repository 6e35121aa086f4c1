// Takes this machine out of paths and commands: what remains is equal wherever the same sources are built.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kestrel::build {

// The two roots whose place on disk means nothing. Absolute, lexically normal, no slash at the end.
struct Roots {
    std::filesystem::path source;
    std::filesystem::path build;
};

// "engine/cpu/ops.cpp" for a source, "<build>/x.h" for a generated file, the path itself for all others.
[[nodiscard]] std::string normalised_path(const std::filesystem::path& path, const Roots& roots);

// The roots replaced by "." and "<build>" wherever a path starts in the argument: at its first slash, or after '=', ',' or ':'.
[[nodiscard]] std::string normalised_argument(std::string_view argument, const Roots& roots);

// A command without its outputs (-o, -MD, -MF, -MT, -MQ and their values), with argv[0] reduced to "c++" or "nvcc": which that is,
// its hash in "tools" says better than its name.
[[nodiscard]] std::vector<std::string> normalised_command(const std::vector<std::string>& argv, const Roots& roots);

}  // namespace kestrel::build
