// Many sessions: ratios only, since ms/token of different sessions never share an axis.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

// One line for each session, in the given order.
[[nodiscard]] std::string list_text(const std::vector<SessionSummary>& sessions);

// The same, grouped by workload, host and device; within a group by experiment and version, then time. A change of the base
// artifact or of the environment since the line above is marked, because it may explain a step.
[[nodiscard]] std::string history_text(const std::vector<SessionSummary>& sessions);

// {"format": 1, "kind": "list", "sessions": [summary...]}
[[nodiscard]] nlohmann::json list_json(const std::vector<SessionSummary>& sessions);

// {"format": 1, "kind": "history", "groups": [{"workload_sha256", "model_name", "host", "device", "sessions": [summary...]}]};
// each summary also has "ratio": {"ratio", "lo", "hi"} or null.
[[nodiscard]] nlohmann::json history_json(const std::vector<SessionSummary>& sessions);

}  // namespace kestrel
