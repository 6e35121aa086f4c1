// Brings a database to the schema this program knows, one transaction per step.
#pragma once

#include "store/sqlite.hpp"

namespace kestrel {

// The newest schema; PRAGMA user_version of a migrated file.
[[nodiscard]] int schema_version();

// Creates or upgrades the schema of a connection opened for writing; does nothing if it is current. A read-only connection
// is only checked. Throws Error(storage) for a file written by a newer program, and for an older one opened read-only.
void migrate(Connection& connection);

}  // namespace kestrel
