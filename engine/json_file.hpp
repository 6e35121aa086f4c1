// JSON of strangers: parsed with a limit on nesting, and without duplicate keys, of which the library would keep the last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kestrel {

// An object. Throws EngineError (KESTREL_BAD_MODEL) naming `source` and, for a duplicate, the key.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& source);

// The same from a file of at most `most_bytes`.
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& file, std::uintmax_t most_bytes);

}  // namespace kestrel
