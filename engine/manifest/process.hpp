// Running the compiler's tools and hashing files, for the manifest.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kestrel::build {

// Runs argv[0], searched in PATH, with nothing on standard input; returns its standard output.
// Throws std::runtime_error with the command if it cannot be started or does not exit with 0.
[[nodiscard]] std::string output_of(const std::vector<std::string>& argv);

// The file that a command name stands for: the name itself if it has a slash, else the first match in PATH; symbolic links
// followed. Empty if there is none.
[[nodiscard]] std::filesystem::path find_program(const std::string& name);

// SHA-256 of a file's bytes, 64 lower-case hexadecimal digits. Throws std::runtime_error that names the file.
[[nodiscard]] std::string file_sha256(const std::filesystem::path& path);

}  // namespace kestrel::build
