// The reading half of Store.
#include <stdexcept>

#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"
#include "store/codec.hpp"
#include "store/migrations.hpp"
#include "store/repository.hpp"
#include "store/seal.hpp"

namespace kestrel {
namespace {

// Throws std::invalid_argument only, whoever finds the fault.
template <typename Record>
Record parsed(const std::string& text) {
    const nlohmann::json j = parse_json(text);
    try {
        return j.get<Record>();
    } catch (const nlohmann::json::exception& problem) {
        throw std::invalid_argument(problem.what());
    }
}

Session read_header(Connection& connection, std::int64_t id) {
    Statement row(
        connection,
        "SELECT s.uuid, s.state, s.started_at, s.ended_at, s.host, s.device, s.runner_version, s.seal_sha256, s.place_kind,"
        " s.place_name, s.place_base, s.place_candidate, s.place_changed_objects, s.plan_sha256, s.plan, w.json, e.sha256, e.facts"
        " FROM session s JOIN workload w ON w.id = s.workload_id JOIN environment e ON e.id = s.environment_id WHERE s.id = ?1");
    if (!row.bind(id).step()) throw std::invalid_argument("its workload or environment is missing");
    Session session;
    session.uuid = row.text(0);
    session.state = session_state_from(row.text(1));
    session.started_at = row.text(2);
    session.ended_at = row.text(3);
    session.host = row.text(4);
    session.device = row.text(5);
    session.runner_version = row.text(6);
    session.seal_sha256 = row.text(7);
    session.place.kind = place_kind_from(row.text(8));
    session.place.name = row.text(9);
    session.place.base = row.text(10);
    session.place.candidate = row.text(11);
    session.place.changed_objects = parsed<std::vector<std::string>>(row.text(12));
    auto plan = parsed<nlohmann::json::object_t>(row.text(14));
    plan["sha256"] = row.text(13);
    from_json(plan, session.plan);
    session.workload = parsed<Workload>(row.text(15));
    session.environment.sha256 = row.text(16);
    session.environment.facts = parsed<std::map<std::string, std::string>>(row.text(17));
    return session;
}

void read_artifacts_and_arms(Connection& connection, std::int64_t id, Session& session) {
    Statement row(connection,
                  "SELECT a.sha256, a.bytes, a.engine_name, r.seen_path, r.stored_path, m.sha256, m.json, r.commit_id, r.dirty"
                  " FROM registration r JOIN artifact a ON a.id = r.artifact_id JOIN manifest m ON m.id = a.manifest_id"
                  " WHERE r.session_id = ?1 ORDER BY r.ordinal");
    for (row.bind(id); row.step();) {
        session.artifacts.push_back({row.text(0), row.integer(1), row.text(2), row.text(3), row.text(4), row.text(5), row.text(6),
                                     row.text(7), row.integer(8) != 0});
    }
    for (int role = 0; role < arm_count; ++role) session.arms[static_cast<std::size_t>(role)].role = static_cast<ArmRole>(role);
    Statement arm_row(connection,
                      "SELECT r.role, a.sha256, r.switches, r.effective_switches, r.borrowed_memory"
                      " FROM arm r JOIN artifact a ON a.id = r.artifact_id WHERE r.session_id = ?1");
    for (arm_row.bind(id); arm_row.step();) {
        Arm& arm = session.arms[index_of(arm_role_from(arm_row.text(0)))];
        arm.artifact_sha256 = arm_row.text(1);
        arm.switches = parsed<std::vector<SwitchSetting>>(arm_row.text(2));
        arm.effective_switches = parsed<std::vector<SwitchSetting>>(arm_row.text(3));
        arm.borrowed_memory = arm_row.integer(4) != 0;
    }
}

void read_rounds(Connection& connection, std::int64_t id, Session& session) {
    Statement row(connection,
                  "SELECT replicate, worker_pid, load_order, status, detail, state_digest, distinct_tokens FROM replicate"
                  " WHERE session_id = ?1 ORDER BY replicate");
    for (row.bind(id); row.step();) {
        Replicate& replicate = session.replicates.emplace_back();
        replicate.index = static_cast<int>(row.integer(0));
        replicate.worker_pid = row.integer(1);
        replicate.load_order = parsed<std::array<ArmRole, 3>>(row.text(2));
        replicate.status = row.text(3);
        replicate.detail = row.text(4);
        replicate.state_digest = parsed<std::array<std::string, 3>>(row.text(5));
        replicate.distinct_tokens = static_cast<int>(row.integer(6));
    }
    Statement window_row(connection,
                         "SELECT r.replicate, r.super_round, r.round, r.slot, r.arm, r.started_ns, r.window_ns, r.token_ns, o.digest"
                         " FROM round r JOIN output o ON o.id = r.output_id"
                         " WHERE r.session_id = ?1 ORDER BY r.replicate, r.super_round, r.round, r.slot");
    for (window_row.bind(id); window_row.step();) {
        Window& window = session.windows.emplace_back();
        window.replicate = static_cast<int>(window_row.integer(0));
        window.super_round = static_cast<int>(window_row.integer(1));
        window.round = static_cast<int>(window_row.integer(2));
        window.slot = static_cast<int>(window_row.integer(3));
        window.arm = arm_role_from(window_row.text(4));
        window.started_ns = window_row.integer(5);
        window.window_ns = window_row.integer(6);
        window.token_ns = decode_token_ns(window_row.text(7));
        window.output_digest = window_row.text(8);
    }
}

void read_readings(Connection& connection, std::int64_t id, Session& session) {
    if (!has_telemetry(connection)) return;
    Statement row(connection,
                  "SELECT replicate, super_round, round, at_ns, sources FROM telemetry"
                  " WHERE session_id = ?1 ORDER BY replicate, super_round, round");
    for (row.bind(id); row.step();) {
        // By way of the record, whose reader checks every field.
        session.readings.push_back(nlohmann::json{
            {"replicate", row.integer(0)},
            {"super_round", row.integer(1)},
            {"round", row.integer(2)},
            {"at_ns", row.integer(3)},
            {"sources",
             parse_json(row.text(4))}}.get<Reading>());
    }
}

void read_events_and_verdict(Connection& connection, std::int64_t id, Session& session) {
    Statement row(connection, "SELECT sequence, at, kind, detail FROM event WHERE session_id = ?1 ORDER BY sequence");
    for (row.bind(id); row.step();) session.events.push_back({static_cast<int>(row.integer(0)), row.text(1), row.text(2), row.text(3)});
    Statement verdict_row(connection, "SELECT kind, reasons, margin, delta, estimate FROM verdict WHERE session_id = ?1");
    if (!verdict_row.bind(id).step()) return;
    Verdict& verdict = session.verdict.emplace();
    verdict.kind = verdict_kind_from(verdict_row.text(0));
    verdict.reasons = parsed<std::vector<std::string>>(verdict_row.text(1));
    verdict.margin = verdict_row.real(2);
    verdict.delta = verdict_row.real(3);
    verdict.estimate = parsed<Estimate>(verdict_row.text(4));
}

SessionSummary read_summary(const Statement& row) {
    SessionSummary line;
    line.uuid = row.text(0);
    line.state = session_state_from(row.text(1));
    line.started_at = row.text(2);
    line.experiment = row.text(3);
    line.experiment_version = static_cast<int>(row.integer(4));
    line.model_name = row.text(5);
    line.workload_sha256 = row.text(6);
    line.environment_sha256 = row.text(7);
    line.host = row.text(8);
    line.device = row.text(9);
    line.base_sha256 = row.text(10);
    line.candidate_sha256 = row.text(11);
    line.finished_replicates = static_cast<int>(row.integer(12));
    line.windows = row.integer(13);
    line.margin = row.real(14);
    if (row.is_null(15)) return line;
    line.verdict = verdict_kind_from(row.text(15));
    line.candidate = Interval{row.real(16), row.real(17), row.real(18), row.real(19), row.real(20), static_cast<int>(row.integer(21))};
    return line;
}

constexpr const char* summary_columns =
    "SELECT s.uuid, s.state, s.started_at, s.experiment, s.experiment_version, w.model_name, w.sha256, e.sha256, s.host, s.device,"
    " (SELECT a.sha256 FROM arm r JOIN artifact a ON a.id = r.artifact_id WHERE r.session_id = s.id AND r.role = 'base'),"
    " (SELECT a.sha256 FROM arm r JOIN artifact a ON a.id = r.artifact_id WHERE r.session_id = s.id AND r.role = 'candidate'),"
    " (SELECT count(*) FROM replicate p WHERE p.session_id = s.id AND p.status = 'finished'),"
    " (SELECT count(*) FROM round d WHERE d.session_id = s.id),"
    " coalesce(v.margin, s.plan ->> 'margin'), v.kind, c.d, c.lo, c.hi, c.confidence, c.sd, c.replicates"
    " FROM session s JOIN workload w ON w.id = s.workload_id JOIN environment e ON e.id = s.environment_id"
    " LEFT JOIN verdict v ON v.session_id = s.id"
    " LEFT JOIN comparison c ON c.session_id = s.id AND c.candidate_arm = 'candidate'";

}  // namespace

std::string Store::resolve(const std::string& uuid_or_prefix) {
    if (uuid_or_prefix.empty() || uuid_or_prefix.find_first_not_of("0123456789abcdef-") != std::string::npos) {
        throw Error(ExitCode::usage,
                    "'" + uuid_or_prefix + "' is not a session's UUID or the beginning of one; 'kestrel-ab list' shows them");
    }
    // 'g' sorts after every character that a UUID can have.
    Statement row(*connection_, "SELECT uuid FROM session WHERE uuid >= ?1 AND uuid < ?1 || 'g' ORDER BY uuid LIMIT 5");
    std::vector<std::string> found;
    for (row.bind(uuid_or_prefix); row.step();) found.push_back(row.text(0));
    if (found.empty()) {
        throw Error(ExitCode::usage, "no session '" + uuid_or_prefix + "' in " + path() + "; 'kestrel-ab list' shows those that it holds");
    }
    if (found.size() == 1) return found.front();
    std::string message = "'" + uuid_or_prefix + "' is the beginning of several sessions' UUIDs, give more of it:";
    for (const std::string& uuid : found) message += " " + uuid;
    throw Error(ExitCode::usage, message + (found.size() == 5 ? " ..." : ""));
}

Session Store::load_session(const std::string& uuid_or_prefix) {
    Snapshot snapshot(*connection_);
    const std::string uuid = resolve(uuid_or_prefix);
    const std::int64_t id = session_id(uuid);
    try {
        Session session = read_header(*connection_, id);
        read_artifacts_and_arms(*connection_, id, session);
        read_rounds(*connection_, id, session);
        read_readings(*connection_, id, session);
        read_events_and_verdict(*connection_, id, session);
        return session;
    } catch (const std::invalid_argument& problem) {
        throw Error(ExitCode::storage, "session " + uuid + " in " + path() + " cannot be read: " + problem.what() +
                                           "; check with 'kestrel-ab store verify' and restore a backup");
    }
}

std::vector<SessionSummary> Store::list_sessions(const SessionFilter& filter) {
    std::string sql = summary_columns;
    sql += " WHERE (?1 = '' OR s.experiment = ?1) AND (?2 = '' OR s.state = ?2) AND (?3 = '' OR w.sha256 = ?3)";
    sql += " ORDER BY s.started_at DESC, s.id DESC LIMIT ?4";
    Statement row(*connection_, sql);
    row.bind(filter.experiment.value_or(""), filter.state ? name_of(*filter.state) : "", filter.workload_sha256.value_or(""),
             filter.limit > 0 ? filter.limit : -1);
    std::vector<SessionSummary> lines;
    while (row.step()) lines.push_back(read_summary(row));
    return lines;
}

std::vector<SessionSummary> Store::running_sessions() {
    SessionFilter running;
    running.state = SessionState::running;
    std::vector<SessionSummary> lines = list_sessions(running);
    return {lines.rbegin(), lines.rend()};
}

std::string Store::compute_seal(const std::string& uuid_or_prefix) {
    Snapshot snapshot(*connection_);
    Statement row(*connection_, "SELECT id, ended_at FROM session WHERE uuid = ?1");
    const std::string uuid = resolve(uuid_or_prefix);
    row.bind(uuid).step();
    return kestrel::compute_seal(*connection_, row.integer(0), row.text(1));
}

bool Store::verify_seal(const std::string& uuid_or_prefix) {
    Snapshot snapshot(*connection_);
    const std::string uuid = resolve(uuid_or_prefix);
    Statement row(*connection_, "SELECT id, state, ended_at, seal_sha256, plan, plan_sha256 FROM session WHERE uuid = ?1");
    row.bind(uuid).step();
    if (row.text(1) != name_of(SessionState::sealed)) {
        throw Error(ExitCode::invalid,
                    "session " + uuid + " is " + row.text(1) + " and has no seal to verify; only a sealed session is evidence");
    }
    return row.text(3) == kestrel::compute_seal(*connection_, row.integer(0), row.text(2)) && row.text(5) == store_sha256_hex(row.text(4));
}

std::vector<std::string> Store::verify() {
    std::vector<std::string> problems;
    Statement integrity(*connection_, "PRAGMA integrity_check");
    while (integrity.step()) {
        if (integrity.text(0) != "ok") problems.push_back("the file is damaged: " + integrity.text(0));
    }
    Statement references(*connection_, "PRAGMA foreign_key_check");
    while (references.step())
        problems.push_back("a row of table " + references.text(0) + " refers to a missing row of " + references.text(2));
    Statement sealed(*connection_, "SELECT uuid FROM session WHERE state = 'sealed' ORDER BY id");
    std::vector<std::string> uuids;
    while (sealed.step()) uuids.push_back(sealed.text(0));
    for (const std::string& uuid : uuids) {
        try {
            if (!verify_seal(uuid)) problems.push_back("session " + uuid + " was changed after it was sealed");
        } catch (const Error& problem) {
            problems.push_back("session " + uuid + " cannot be checked: " + problem.what());
        }
    }
    return problems;
}

}  // namespace kestrel
