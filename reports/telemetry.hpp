// What machine and device did during a session.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runner/record/record.hpp"

namespace kestrel {

// A heading and a line each for CPU and GPU; what told nothing reads "not checked". The GPU's only where the session's device is one.
[[nodiscard]] std::string telemetry_section(const Session& session);

// The same numbers by name; null for what was not checked. Units are in the names.
[[nodiscard]] nlohmann::json telemetry_json(const Session& session);

}  // namespace kestrel
