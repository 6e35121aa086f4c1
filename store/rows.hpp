// Rows that sessions share: each is stored once, found again by content, and never changed. Call inside a transaction.
#pragma once

#include <cstdint>
#include <string>

#include "runner/record/record.hpp"
#include "store/sqlite.hpp"

namespace kestrel::rows {

// Each returns the local key of the row with this content and inserts it if it is new. artifact_id throws Error(storage) if
// the same SHA-256 was recorded earlier with other content: one of the two records is then not what it claims to be.
[[nodiscard]] std::int64_t artifact_id(Connection& connection, const Artifact& artifact);
[[nodiscard]] std::int64_t environment_id(Connection& connection, const Environment& environment);
[[nodiscard]] std::int64_t workload_id(Connection& connection, const Workload& workload);
[[nodiscard]] std::int64_t output_id(Connection& connection, const std::string& digest);

void insert_session(Connection& connection, const Session& session);  // the row only, as running
void insert_registration(Connection& connection, std::int64_t session_id, std::size_t ordinal, const Artifact& artifact);
void insert_arm(Connection& connection, std::int64_t session_id, const Arm& arm);
void insert_window(Connection& connection, std::int64_t session_id, const Window& window);
void insert_reading(Connection& connection, std::int64_t session_id, const Reading& reading);
void insert_event(Connection& connection, std::int64_t session_id, const std::string& at, const std::string& kind,
                  const std::string& detail);
void insert_verdict(Connection& connection, std::int64_t session_id, const Verdict& verdict);  // with its comparisons

}  // namespace kestrel::rows
