// What an engine library says about itself, read from its bytes. The library is never loaded: its code must not run in the
// process that decides whether it may be measured.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kestrel {

struct EngineLibrary {
    std::string manifest_json;        // the ELF note's bytes, not yet checked (parse_manifest does)
    std::string soname;               // "" if it has none
    std::string run_path;             // DT_RUNPATH or DT_RPATH; "" if it has none
    std::vector<std::string> needed;  // DT_NEEDED, in file order
};

// Reads `bytes`, a whole ELF file; `origin` names it in messages. Every offset is checked: hostile or cut-off bytes give
// Error(not_comparable), as does a library without exactly one manifest note.
[[nodiscard]] EngineLibrary parse_engine_library(std::string_view bytes, const std::string& origin);

// The same for a file; `origin` is the file's own name if empty. Error(usage) if it cannot be read or is no regular file.
[[nodiscard]] EngineLibrary read_engine_library(const std::filesystem::path& path, const std::string& origin = "");

// Engine code must be in the one library that is hashed: dependencies are deduplicated by name, so two builds that bring their
// own second library would both run the first one's. Throws Error(not_comparable) that lists each dependency that is no
// system library, or a run path, which could replace system libraries.
void require_self_contained(const EngineLibrary& library, const std::string& origin);

}  // namespace kestrel
