// Brings a database to the schema this program knows, one transaction per step.
#pragma once

#include "store/sqlite.hpp"

namespace kestrel {

// The newest schema; PRAGMA user_version of a migrated file.
[[nodiscard]] int schema_version();

// Creates or upgrades the schema of a connection opened for writing; does nothing if it is current. A read-only connection is only
// checked; it may stay at an older version. Throws Error(storage) for a file written by a newer program, and for one without a schema
// opened read-only.
void migrate(Connection& connection);

// The first version that has the table `telemetry`.
inline constexpr std::int64_t telemetry_since = 2;
[[nodiscard]] inline bool has_telemetry(Connection& connection) {
    return connection.scalar("PRAGMA user_version") >= telemetry_since;
}

}  // namespace kestrel
