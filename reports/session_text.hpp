// The report of one session.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reports/rounds.hpp"
#include "runner/record/record.hpp"

namespace kestrel {

struct SessionTextOptions {
    std::string database_path;
    RoundDetail detail = RoundDetail::super_rounds;
};

// For a terminal, at most 120 columns. A session that is running or was aborted has no verdict: the report says so and shows
// the rounds that are finished.
[[nodiscard]] std::string session_text(const Session& session, const SessionTextOptions& options);

// {"format": 1, "kind": "session", "database": ..., "session": the whole record, "result": ratios and intervals, or null if
// there is no verdict, "finished_rounds": n, "telemetry": reports/telemetry.hpp}.
[[nodiscard]] nlohmann::json session_json(const Session& session, const std::string& database_path);

}  // namespace kestrel
