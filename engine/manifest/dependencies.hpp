// Reads what compiler and linker wrote about their own inputs.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kestrel::build {

// Prerequisites of the first rule of a compiler's dependency file (g++ -MD), unescaped, in order.
// Throws std::runtime_error if there is no rule.
[[nodiscard]] std::vector<std::string> prerequisites(std::string_view make_rule);

// The same for ld --dependency-file, which writes one name per line and escapes nothing, not even spaces.
[[nodiscard]] std::vector<std::string> linker_prerequisites(std::string_view make_rule);

// What keep_depfile.sh kept beside an object.
struct Compilation {
    std::filesystem::path directory;            // where the compiler ran
    std::vector<std::string> argv;              // argv[0] is the compiler
    std::filesystem::path source;               // absolute
    std::vector<std::filesystem::path> inputs;  // every file the compiler read, the source included; absolute
};

// Throws std::runtime_error if a record is missing or if a file under `watched_root` changed after the compilation began:
// the manifest would then describe other bytes than the object was made from.
[[nodiscard]] Compilation read_compilation(const std::filesystem::path& object, const std::filesystem::path& watched_root);

// The whole file as text. Throws std::runtime_error that names it.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace kestrel::build
