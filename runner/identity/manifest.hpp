// What went into an artifact, as the build recorded it inside the artifact.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kestrel {

struct ManifestUnit {
    std::string source;             // relative to the source root: "engine/cpu/ops.cpp"
    std::vector<std::string> argv;  // the compile command without outputs and machine paths
    std::string object_sha256;
};

struct ManifestTool {
    std::string version;
    std::string sha256;
};

struct Manifest {
    std::string engine;  // the same for all variants of an engine
    std::string target;  // "x86_64"
    std::vector<ManifestUnit> units;
    std::map<std::string, std::string> files;  // every file a compiler read -> SHA-256
    std::vector<std::string> link_argv;
    std::map<std::string, std::string> link_inputs;  // every file the linker read, objects aside -> SHA-256
    std::map<std::string, ManifestTool> tools;       // "c++", "cc1plus", "as", "ld"
};

// Parses and validates: known format, hashes that are hashes, each unit once and its source among the files. `origin` names the
// library in messages. Throws Error(not_comparable).
[[nodiscard]] Manifest parse_manifest(std::string_view json, const std::string& origin = "an engine library");

}  // namespace kestrel
