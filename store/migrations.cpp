#include "store/migrations.hpp"

#include <array>
#include <string>

#include "runner/record/error.hpp"
#include "store/schema_v1.hpp"
#include "store/schema_v2.hpp"

namespace kestrel {
namespace {

// Step i brings user_version i to i + 1. A released step is never edited: files made by it exist.
constexpr std::array<std::string (*)(), 2> steps{schema_v1, schema_v2};

// Whoever only reads does without the tables that came later (store/seal.cpp, read_readings): an old file can be shown before it is
// upgraded.
constexpr std::int64_t oldest_readable = 1;

}  // namespace

int schema_version() {
    return static_cast<int>(steps.size());
}

void migrate(Connection& connection) {
    const auto version_of = [&] { return connection.scalar("PRAGMA user_version"); };
    const std::int64_t found = version_of();
    if (found > schema_version()) {
        throw Error(ExitCode::storage, "the database " + connection.path() + " was written by a newer kestrel-ab (schema " +
                                           std::to_string(found) + ", this program knows up to " + std::to_string(schema_version()) +
                                           "); use that version, or name another file with --db");
    }
    if (found == schema_version()) return;
    if (connection.mode() == OpenMode::read_only) {
        if (found >= oldest_readable) return;
        throw Error(ExitCode::storage, "the database " + connection.path() + " has schema " + std::to_string(found) +
                                           ", this program needs " + std::to_string(schema_version()) +
                                           "; any command that writes, such as 'kestrel-ab run', upgrades it");
    }
    while (version_of() < schema_version()) {
        Transaction transaction(connection);
        // Read again under the write lock: another process may have taken this step meanwhile.
        const std::int64_t version = version_of();
        if (version >= schema_version()) break;
        connection.execute(steps.at(static_cast<std::size_t>(version))());
        connection.execute("PRAGMA application_id=" + std::to_string(kestrel_application_id));
        connection.execute("PRAGMA user_version=" + std::to_string(version + 1));
        transaction.commit();
    }
}

}  // namespace kestrel
