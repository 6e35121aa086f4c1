#include "runner/record/json.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "runner/record/names.hpp"

namespace kestrel {
namespace {

using nlohmann::json;

// encode: value -> JSON.

template <typename T>
json encode(const T& value) {
    json out;
    to_json(out, value);
    return out;
}
json encode(bool value) {
    return value;
}
json encode(int value) {
    return value;
}
json encode(std::int64_t value) {
    return value;
}
json encode(std::uint64_t value) {
    return std::to_string(value);
}
json encode(double value) {
    if (std::isnan(value)) return nullptr;
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
}
json encode(const std::string& value) {
    return value;
}
template <typename T>
json encode(const std::map<std::string, T>& value) {
    json out = json::object();
    for (const auto& [key, one] : value) out[key] = encode(one);
    return out;
}
template <typename T>
json encode(const std::optional<T>& value) {
    return value ? encode(*value) : json(nullptr);
}
template <typename T, std::size_t N>
json encode(const std::array<T, N>& values);
template <typename T>
json encode(const std::vector<T>& values) {
    json out = json::array();
    for (const auto& value : values) out.push_back(encode(value));
    return out;
}
template <typename T, std::size_t N>
json encode(const std::array<T, N>& values) {
    json out = json::array();
    for (const auto& value : values) out.push_back(encode(value));
    return out;
}

// decode: JSON -> value. Each throws std::invalid_argument; read() puts the field's name in front.

[[noreturn]] void reject(const char* expected, const json& got) {
    std::string shown = dump_json(got);
    if (shown.size() > 60) shown = shown.substr(0, 60) + "...";
    throw std::invalid_argument(std::string("expected ") + expected + ", got " + shown);
}

template <typename T>
void decode(const json& j, T& out) {
    from_json(j, out);
}
void decode(const json& j, bool& out) {
    if (!j.is_boolean()) reject("true or false", j);
    out = j.get<bool>();
}
void decode(const json& j, std::int64_t& out) {
    if (!j.is_number_integer()) reject("an integer", j);
    if (j.is_number_unsigned() && j.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        reject("a 64-bit signed integer", j);
    }
    out = j.get<std::int64_t>();
}
void decode(const json& j, int& out) {
    std::int64_t wide = 0;
    decode(j, wide);
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) reject("a 32-bit integer", j);
    out = static_cast<int>(wide);
}
void decode(const json& j, std::uint64_t& out) {
    if (!j.is_string()) reject("a decimal number in a string", j);
    const auto& text = j.get_ref<const std::string&>();
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (problem != std::errc() || end != text.data() + text.size()) reject("an unsigned 64-bit decimal number", j);
}
void decode(const json& j, double& out) {
    if (j.is_null()) {
        out = std::numeric_limits<double>::quiet_NaN();
    } else if (j == "inf" || j == "-inf") {
        out = j == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    } else if (j.is_number()) {
        out = j.get<double>();
    } else {
        reject("a number", j);
    }
}
void decode(const json& j, std::string& out) {
    if (!j.is_string()) reject("a string", j);
    out = j.get<std::string>();
}
template <typename T>
void decode(const json& j, std::map<std::string, T>& out) {
    if (!j.is_object()) reject("an object", j);
    out.clear();
    for (const auto& [key, value] : j.items()) decode(value, out[key]);
}
template <typename T>
void decode(const json& j, std::optional<T>& out) {
    if (j.is_null()) {
        out.reset();
    } else {
        decode(j, out.emplace());
    }
}
template <typename T, std::size_t N>
void decode(const json& j, std::array<T, N>& out);
template <typename T>
void decode(const json& j, std::vector<T>& out) {
    if (!j.is_array()) reject("an array", j);
    out.clear();
    out.reserve(j.size());
    for (const auto& item : j) decode(item, out.emplace_back());
}
template <typename T, std::size_t N>
void decode(const json& j, std::array<T, N>& out) {
    if (!j.is_array() || j.size() != N) reject(("an array of " + std::to_string(N)).c_str(), j);
    for (std::size_t i = 0; i < N; ++i) decode(j[i], out[i]);
}

template <typename T>
void decode_field(const json& record, const char* name, T& out) {
    const auto found = record.find(name);
    if (found == record.end()) throw std::invalid_argument("field '" + std::string(name) + "' is missing");
    try {
        decode(*found, out);
    } catch (const std::invalid_argument& problem) {
        throw std::invalid_argument(std::string(name) + ": " + problem.what());
    }
}

const std::string& text_of(const json& j) {
    if (!j.is_string()) reject("a name", j);
    return j.get_ref<const std::string&>();
}

}  // namespace

void to_json(json& j, ArmRole role) {
    j = std::string(name_of(role));
}
void to_json(json& j, VerdictKind kind) {
    j = std::string(name_of(kind));
}
void to_json(json& j, SessionState state) {
    j = std::string(name_of(state));
}
void to_json(json& j, PlaceKind kind) {
    j = std::string(name_of(kind));
}
void from_json(const json& j, ArmRole& role) {
    role = arm_role_from(text_of(j));
}
void from_json(const json& j, VerdictKind& kind) {
    kind = verdict_kind_from(text_of(j));
}
void from_json(const json& j, SessionState& state) {
    state = session_state_from(text_of(j));
}
void from_json(const json& j, PlaceKind& kind) {
    kind = place_kind_from(text_of(j));
}

// One listing of each record's fields makes both directions, so that writer and reader cannot drift apart and the name in
// the JSON is the name in the struct.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define KESTREL_ENCODE(field) j[#field] = encode(value.field);
#define KESTREL_DECODE(field) decode_field(j, #field, value.field);
#define KESTREL_RECORD(Type, ...)                                              \
    void to_json(json& j, const Type& value) {                                 \
        j = json::object();                                                    \
        NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(KESTREL_ENCODE, __VA_ARGS__)) \
    }                                                                          \
    void from_json(const json& j, Type& value) {                               \
        if (!j.is_object()) reject("an object (" #Type ")", j);                \
        NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(KESTREL_DECODE, __VA_ARGS__)) \
    }
// Fields that were added after the first release: see the header.
#define KESTREL_ENCODE_ADDED(field) \
    if (!(value.field == standard.field)) j[#field] = encode(value.field);
#define KESTREL_DECODE_ADDED(field) \
    if (j.contains(#field)) decode_field(j, #field, value.field);
#define KESTREL_ADDED(Type, ...)                                                     \
    void encode_added(json& j, const Type& value) {                                  \
        const Type standard;                                                         \
        NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(KESTREL_ENCODE_ADDED, __VA_ARGS__)) \
    }                                                                                \
    void decode_added(const json& j, Type& value) {                                  \
        NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(KESTREL_DECODE_ADDED, __VA_ARGS__)) \
    }
#define KESTREL_EXTENDED_RECORD(Type, ...)                                     \
    void to_json(json& j, const Type& value) {                                 \
        j = json::object();                                                    \
        NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(KESTREL_ENCODE, __VA_ARGS__)) \
        encode_added(j, value);                                                \
    }                                                                          \
    void from_json(const json& j, Type& value) {                               \
        if (!j.is_object()) reject("an object (" #Type ")", j);                \
        NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(KESTREL_DECODE, __VA_ARGS__)) \
        decode_added(j, value);                                                \
    }
// NOLINTEND(bugprone-macro-parentheses)

KESTREL_RECORD(SwitchSetting, name, value)
KESTREL_RECORD(Place, kind, name, base, candidate, changed_objects)
KESTREL_RECORD(Artifact, sha256, bytes, engine_name, seen_path, stored_path, manifest_sha256, manifest_json, commit, dirty)
KESTREL_RECORD(Arm, role, artifact_sha256, switches, effective_switches, borrowed_memory)
KESTREL_RECORD(Environment, sha256, facts)
KESTREL_RECORD(Workload, sha256, model_name, model_path, weights_digest, layout_id, launch_mode, layers, gdn_layers, attention_layers,
               vocab, threads, position, tokens)
KESTREL_RECORD(Look, replicates, confidence)
namespace {
KESTREL_ADDED(Plan, policy, looks, control_sd)
}  // namespace
KESTREL_EXTENDED_RECORD(Plan, sha256, experiment, experiment_version, seed, replicates, super_rounds, tokens, position, threads, margin,
                        confidence, control_confidence, output_rule, load_orders, schedules, paddings)
KESTREL_RECORD(Window, replicate, super_round, round, slot, arm, started_ns, window_ns, token_ns, output_digest)
KESTREL_RECORD(Reading, replicate, super_round, round, at_ns, sources)
KESTREL_RECORD(Replicate, index, worker_pid, load_order, status, detail, state_digest, distinct_tokens)
KESTREL_RECORD(Event, sequence, at, kind, detail)
KESTREL_RECORD(Interval, d, lo, hi, confidence, sd, replicates)
KESTREL_RECORD(ArmSummary, arm, windows, mean_ms, median_ms, min_ms, max_ms, spread_percent, p99_token_ms, tokens_per_second)
namespace {
KESTREL_ADDED(Estimate, mean_based, p99_based, mean_minus_robust, p99_minus_robust)
}  // namespace
KESTREL_EXTENDED_RECORD(Estimate, candidate, control, replicate_d, replicate_control_d, arms, mean_ratio, p99_ratio, saved_ms_per_token)
KESTREL_RECORD(Verdict, kind, reasons, margin, delta, estimate)
namespace {
KESTREL_ADDED(Session, readings)
}  // namespace
KESTREL_EXTENDED_RECORD(Session, uuid, state, started_at, ended_at, host, device, runner_version, seal_sha256, place, plan, workload,
                        environment, arms, artifacts, replicates, windows, events, verdict)
KESTREL_RECORD(SessionSummary, uuid, state, started_at, experiment, experiment_version, model_name, workload_sha256, environment_sha256,
               host, device, base_sha256, candidate_sha256, finished_replicates, windows, verdict, candidate, margin)

std::string dump_json(const json& j) {
    return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

json parse_json(std::string_view text) {
    try {
        return json::parse(text);
    } catch (const json::exception& problem) {
        throw std::invalid_argument(std::string("not JSON: ") + problem.what());
    }
}

std::string canonical_json(const Plan& plan) {
    json j = plan;
    j.erase("sha256");
    return dump_json(j);
}

}  // namespace kestrel
