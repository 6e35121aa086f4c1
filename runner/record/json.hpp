// JSON for every record: the worker protocol, `--json` output and the store all use these. Field names are the struct's,
// enumerators are spelled by name_of. A 64-bit seed is a decimal string, so that JavaScript keeps it; NaN is null and an
// infinity is "inf" or "-inf", because JSON has no number for them.
//
// from_json is strict, since the text may come from a worker whose heap is corrupt: a missing field, an integer out of
// range, a fraction where an integer belongs, an array of the wrong length or an unknown enumerator throws
// std::invalid_argument that names the field; unknown fields are ignored. Fields that later versions added are written only if
// they differ from their default and need not be there when read: an old session reads, and hashes, as it did.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runner/record/record.hpp"

namespace kestrel {

void to_json(nlohmann::json& j, ArmRole role);
void to_json(nlohmann::json& j, VerdictKind kind);
void to_json(nlohmann::json& j, SessionState state);
void to_json(nlohmann::json& j, PlaceKind kind);
void from_json(const nlohmann::json& j, ArmRole& role);
void from_json(const nlohmann::json& j, VerdictKind& kind);
void from_json(const nlohmann::json& j, SessionState& state);
void from_json(const nlohmann::json& j, PlaceKind& kind);

void to_json(nlohmann::json& j, const SwitchSetting& value);
void to_json(nlohmann::json& j, const Place& value);
void to_json(nlohmann::json& j, const Artifact& value);
void to_json(nlohmann::json& j, const Arm& value);
void to_json(nlohmann::json& j, const Environment& value);
void to_json(nlohmann::json& j, const Workload& value);
void to_json(nlohmann::json& j, const Look& value);
void to_json(nlohmann::json& j, const Plan& value);
void to_json(nlohmann::json& j, const Window& value);
void to_json(nlohmann::json& j, const Reading& value);
void to_json(nlohmann::json& j, const Replicate& value);
void to_json(nlohmann::json& j, const Event& value);
void to_json(nlohmann::json& j, const Interval& value);
void to_json(nlohmann::json& j, const ArmSummary& value);
void to_json(nlohmann::json& j, const Estimate& value);
void to_json(nlohmann::json& j, const Verdict& value);
void to_json(nlohmann::json& j, const Session& value);
void to_json(nlohmann::json& j, const SessionSummary& value);

void from_json(const nlohmann::json& j, SwitchSetting& value);
void from_json(const nlohmann::json& j, Place& value);
void from_json(const nlohmann::json& j, Artifact& value);
void from_json(const nlohmann::json& j, Arm& value);
void from_json(const nlohmann::json& j, Environment& value);
void from_json(const nlohmann::json& j, Workload& value);
void from_json(const nlohmann::json& j, Look& value);
void from_json(const nlohmann::json& j, Plan& value);
void from_json(const nlohmann::json& j, Window& value);
void from_json(const nlohmann::json& j, Reading& value);
void from_json(const nlohmann::json& j, Replicate& value);
void from_json(const nlohmann::json& j, Event& value);
void from_json(const nlohmann::json& j, Interval& value);
void from_json(const nlohmann::json& j, ArmSummary& value);
void from_json(const nlohmann::json& j, Estimate& value);
void from_json(const nlohmann::json& j, Verdict& value);
void from_json(const nlohmann::json& j, Session& value);
void from_json(const nlohmann::json& j, SessionSummary& value);

// One line: keys sorted, no spaces, bytes that are not UTF-8 replaced by U+FFFD (never throws because of them).
[[nodiscard]] std::string dump_json(const nlohmann::json& j);

// Parses one JSON text; throws std::invalid_argument that says where it is wrong.
[[nodiscard]] nlohmann::json parse_json(std::string_view text);

// The plan without its sha256 field, as dump_json writes it: what Plan::sha256 is the SHA-256 of.
[[nodiscard]] std::string canonical_json(const Plan& plan);

}  // namespace kestrel
