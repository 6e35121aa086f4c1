#pragma once

#include <string>

namespace kestrel {

// The SQL that creates version 1 of the schema. Frozen: later versions are further steps in migrations.cpp.
[[nodiscard]] std::string schema_v1();

}  // namespace kestrel
