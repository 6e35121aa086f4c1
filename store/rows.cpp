#include "store/rows.hpp"

#include <cmath>

#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"
#include "store/codec.hpp"

namespace kestrel::rows {
namespace {

// The key of the row that `find` yields for the values, else of the row that `insert` makes of them.
template <typename... Values>
std::int64_t find_or_insert(Connection& connection, std::string_view find, std::string_view insert, const Values&... values) {
    Statement found(connection, find);
    found.bind(values...);
    if (found.step()) return found.integer(0);
    Statement(connection, insert).bind(values...).run();
    return connection.last_insert_id();
}

Error contradiction(const Connection& connection, const std::string& what, const std::string& sha256) {
    return Error(ExitCode::storage, "the database " + connection.path() + " already holds the " + what + " " + sha256 +
                                        " with other content; check it with 'kestrel-ab store verify' and build the artifact again");
}

std::int64_t manifest_id(Connection& connection, const Artifact& artifact) {
    Statement known(connection, "SELECT id, json FROM manifest WHERE sha256 = ?1");
    if (known.bind(artifact.manifest_sha256).step()) {
        if (known.text(1) != artifact.manifest_json) throw contradiction(connection, "manifest", artifact.manifest_sha256);
        return known.integer(0);
    }
    Statement(connection, "INSERT INTO manifest(sha256, json) VALUES(?1, ?2)").bind(artifact.manifest_sha256, artifact.manifest_json).run();
    return connection.last_insert_id();
}

void insert_comparison(Connection& connection, std::int64_t session_id, ArmRole arm, const Interval& interval) {
    Statement(
        connection,
        "INSERT INTO comparison(session_id, base_arm, candidate_arm, d, lo, hi, confidence, sd, replicates, ratio, ratio_lo, ratio_hi)"
        " VALUES(?1, 'base', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")
        .bind(session_id, name_of(arm), interval.d, interval.lo, interval.hi, interval.confidence, interval.sd, interval.replicates,
              std::exp(interval.d), std::exp(interval.lo), std::exp(interval.hi))
        .run();
}

}  // namespace

std::int64_t artifact_id(Connection& connection, const Artifact& artifact) {
    const std::int64_t manifest = manifest_id(connection, artifact);
    Statement known(connection, "SELECT id, bytes, engine_name, manifest_id FROM artifact WHERE sha256 = ?1");
    if (known.bind(artifact.sha256).step()) {
        if (known.integer(1) != artifact.bytes || known.text(2) != artifact.engine_name || known.integer(3) != manifest) {
            throw contradiction(connection, "artifact", artifact.sha256);
        }
        return known.integer(0);
    }
    Statement(connection, "INSERT INTO artifact(sha256, bytes, engine_name, manifest_id) VALUES(?1, ?2, ?3, ?4)")
        .bind(artifact.sha256, artifact.bytes, artifact.engine_name, manifest)
        .run();
    return connection.last_insert_id();
}

std::int64_t environment_id(Connection& connection, const Environment& environment) {
    return find_or_insert(connection, "SELECT id FROM environment WHERE sha256 = ?1 AND facts = ?2",
                          "INSERT INTO environment(sha256, facts) VALUES(?1, ?2)", environment.sha256,
                          dump_json(nlohmann::json(environment).at("facts")));
}

std::int64_t workload_id(Connection& connection, const Workload& workload) {
    return find_or_insert(connection, "SELECT id FROM workload WHERE json = ?1 AND sha256 = ?2 AND model_name = ?3",
                          "INSERT INTO workload(json, sha256, model_name) VALUES(?1, ?2, ?3)", dump_json(nlohmann::json(workload)),
                          workload.sha256, workload.model_name);
}

std::int64_t output_id(Connection& connection, const std::string& digest) {
    return find_or_insert(connection, "SELECT id FROM output WHERE digest = ?1", "INSERT INTO output(digest) VALUES(?1)", digest);
}

void insert_session(Connection& connection, const Session& session) {
    const std::int64_t workload = workload_id(connection, session.workload);
    const std::int64_t environment = environment_id(connection, session.environment);
    Statement(connection,
              "INSERT INTO session(uuid, state, started_at, ended_at, host, device, runner_version, seal_sha256, place_kind, place_name,"
              " place_base, place_candidate, place_changed_objects, plan_sha256, plan, experiment, experiment_version, workload_id, "
              "environment_id)"
              " VALUES(?1, 'running', ?2, '', ?3, ?4, ?5, '', ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)")
        .bind(session.uuid, session.started_at, session.host, session.device, session.runner_version, name_of(session.place.kind),
              session.place.name, session.place.base, session.place.candidate,
              dump_json(nlohmann::json(session.place).at("changed_objects")), session.plan.sha256, canonical_json(session.plan),
              session.plan.experiment, session.plan.experiment_version, workload, environment)
        .run();
}

void insert_registration(Connection& connection, std::int64_t session_id, std::size_t ordinal, const Artifact& artifact) {
    const std::int64_t id = artifact_id(connection, artifact);
    Statement(connection,
              "INSERT INTO registration(session_id, ordinal, artifact_id, seen_path, stored_path, commit_id, dirty)"
              " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        .bind(session_id, static_cast<std::int64_t>(ordinal), id, artifact.seen_path, artifact.stored_path, artifact.commit, artifact.dirty)
        .run();
}

void insert_arm(Connection& connection, std::int64_t session_id, const Arm& arm) {
    Statement artifact(connection, "SELECT id FROM artifact WHERE sha256 = ?1");
    if (!artifact.bind(arm.artifact_sha256).step()) {
        throw Error(ExitCode::storage, "the " + std::string(name_of(arm.role)) + " arm's artifact '" + arm.artifact_sha256 +
                                           "' is not registered in this session; nothing was stored");
    }
    const nlohmann::json fields = arm;
    Statement(
        connection,
        "INSERT INTO arm(session_id, role, artifact_id, switches, effective_switches, borrowed_memory) VALUES(?1, ?2, ?3, ?4, ?5, ?6)")
        .bind(session_id, name_of(arm.role), artifact.integer(0), dump_json(fields.at("switches")),
              dump_json(fields.at("effective_switches")), arm.borrowed_memory)
        .run();
}

void insert_window(Connection& connection, std::int64_t session_id, const Window& window) {
    const std::int64_t output = output_id(connection, window.output_digest);
    Statement(connection,
              "INSERT INTO round(session_id, replicate, super_round, round, slot, arm, started_ns, window_ns, token_ns, output_id)"
              " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")
        .bind(session_id, window.replicate, window.super_round, window.round, window.slot, name_of(window.arm), window.started_ns,
              window.window_ns, Blob{encode_token_ns(window.token_ns)}, output)
        .run();
}

void insert_reading(Connection& connection, std::int64_t session_id, const Reading& reading) {
    const nlohmann::json fields = reading;
    Statement(connection, "INSERT INTO telemetry(session_id, replicate, super_round, round, at_ns, sources) VALUES(?1, ?2, ?3, ?4, ?5, ?6)")
        .bind(session_id, reading.replicate, reading.super_round, reading.round, reading.at_ns, dump_json(fields.at("sources")))
        .run();
}

void insert_event(Connection& connection, std::int64_t session_id, const std::string& at, const std::string& kind,
                  const std::string& detail) {
    Statement(connection,
              "INSERT INTO event(session_id, sequence, at, kind, detail)"
              " SELECT ?1, coalesce(max(sequence) + 1, 0), ?2, ?3, ?4 FROM event WHERE session_id = ?1")
        .bind(session_id, at, kind, detail)
        .run();
}

void insert_verdict(Connection& connection, std::int64_t session_id, const Verdict& verdict) {
    insert_comparison(connection, session_id, ArmRole::candidate, verdict.estimate.candidate);
    insert_comparison(connection, session_id, ArmRole::control, verdict.estimate.control);
    const Interval& d = verdict.estimate.candidate;
    Statement(connection,
              "INSERT INTO verdict(session_id, candidate_arm, kind, margin, delta, ratio, ratio_lo, ratio_hi, reasons, estimate)"
              " VALUES(?1, 'candidate', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")
        .bind(session_id, name_of(verdict.kind), verdict.margin, verdict.delta, std::exp(d.d), std::exp(d.lo), std::exp(d.hi),
              dump_json(nlohmann::json(verdict.reasons)), dump_json(nlohmann::json(verdict.estimate)))
        .run();
}

}  // namespace kestrel::rows
