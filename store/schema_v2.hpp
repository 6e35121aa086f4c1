#pragma once

#include <string>

namespace kestrel {

// The SQL that brings version 1 of the schema to version 2: readings between the rounds. Frozen, as schema_v1 is.
[[nodiscard]] std::string schema_v2();

}  // namespace kestrel
