#include "store/repository.hpp"

#include <stdexcept>

#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"
#include "store/migrations.hpp"
#include "store/rows.hpp"
#include "store/seal.hpp"
#include "store/stamp.hpp"

namespace kestrel {
namespace {

void check_new_session(const Session& session) {
    if (!session.replicates.empty() || !session.windows.empty() || !session.readings.empty() || !session.events.empty() ||
        session.verdict) {
        throw std::invalid_argument("a session begins without replicates, windows, readings, events and verdict");
    }
    if (!is_uuid(session.uuid)) throw std::invalid_argument("not a UUID in lower case: '" + session.uuid + "'");
    for (std::size_t i = 0; i < session.arms.size(); ++i) {
        if (!session.arms[i].artifact_sha256.empty() && index_of(session.arms[i].role) != i) {
            throw std::invalid_argument("Session::arms must be in the order of ArmRole");
        }
    }
    if (session.plan.sha256 != store_sha256_hex(canonical_json(session.plan))) {
        throw Error(ExitCode::storage, "the plan's hash is not that of its content; the session is not recorded (a fault of the runner)");
    }
}

void check_round(const std::vector<Window>& windows, const std::vector<Reading>& readings) {
    if (windows.size() != arm_count) throw std::invalid_argument("a round has three windows");
    const Window& first = windows.front();
    for (const Window& window : windows) {
        if (window.replicate != first.replicate || window.super_round != first.super_round || window.round != first.round) {
            throw std::invalid_argument("the three windows are not of one round");
        }
    }
    for (const Reading& reading : readings) {
        if (reading.replicate != first.replicate) throw std::invalid_argument("a reading is of another replicate than its round");
    }
}

}  // namespace

Store::Store(const std::string& path, OpenMode mode) : connection_(std::make_unique<Connection>(path, mode)) {
    migrate(*connection_);
}

std::int64_t Store::session_id(const std::string& uuid) {
    Statement found(*connection_, "SELECT id FROM session WHERE uuid = ?1");
    if (!found.bind(uuid).step()) throw Error(ExitCode::usage, "no session " + uuid + " in " + path());
    return found.integer(0);
}

void Store::begin_session(const Session& session) {
    check_new_session(session);
    Session dated = session;
    if (dated.started_at.empty()) dated.started_at = utc_now();
    Transaction transaction(*connection_);
    rows::insert_session(*connection_, dated);
    const std::int64_t id = connection_->last_insert_id();
    for (std::size_t i = 0; i < dated.artifacts.size(); ++i) rows::insert_registration(*connection_, id, i, dated.artifacts[i]);
    for (const Arm& arm : dated.arms) {
        if (!arm.artifact_sha256.empty()) rows::insert_arm(*connection_, id, arm);
    }
    rows::insert_event(*connection_, id, dated.started_at, "opened", "plan " + dated.plan.sha256);
    transaction.commit();
}

void Store::add_arm(const std::string& uuid, const Arm& arm) {
    Transaction transaction(*connection_);
    rows::insert_arm(*connection_, session_id(uuid), arm);
    transaction.commit();
}

void Store::begin_replicate(const std::string& uuid, const Replicate& replicate) {
    const nlohmann::json fields = replicate;
    Transaction transaction(*connection_);
    Statement(*connection_,
              "INSERT INTO replicate(session_id, replicate, worker_pid, load_order, status, detail, state_digest, distinct_tokens)"
              " VALUES(?1, ?2, ?3, ?4, 'running', ?5, ?6, ?7)")
        .bind(session_id(uuid), replicate.index, replicate.worker_pid, dump_json(fields.at("load_order")), replicate.detail,
              dump_json(fields.at("state_digest")), replicate.distinct_tokens)
        .run();
    transaction.commit();
}

void Store::add_round(const std::string& uuid, const std::vector<Window>& windows, const std::vector<Reading>& readings) {
    check_round(windows, readings);
    Transaction transaction(*connection_);
    const std::int64_t id = session_id(uuid);
    for (const Window& window : windows) rows::insert_window(*connection_, id, window);
    for (const Reading& reading : readings) rows::insert_reading(*connection_, id, reading);
    transaction.commit();
}

void Store::finish_replicate(const std::string& uuid, const Replicate& replicate) {
    const nlohmann::json fields = replicate;
    Transaction transaction(*connection_);
    const std::int64_t id = session_id(uuid);
    Statement begun(*connection_, "SELECT 1 FROM replicate WHERE session_id = ?1 AND replicate = ?2");
    if (!begun.bind(id, replicate.index).step()) {
        throw Error(ExitCode::storage,
                    "replicate " + std::to_string(replicate.index) + " of session " + uuid + " was never begun; nothing was stored");
    }
    Statement(*connection_,
              "UPDATE replicate SET worker_pid = ?3, load_order = ?4, status = ?5, detail = ?6, state_digest = ?7, distinct_tokens = ?8"
              " WHERE session_id = ?1 AND replicate = ?2")
        .bind(id, replicate.index, replicate.worker_pid, dump_json(fields.at("load_order")), replicate.status, replicate.detail,
              dump_json(fields.at("state_digest")), replicate.distinct_tokens)
        .run();
    transaction.commit();
}

void Store::add_event(const std::string& uuid, const std::string& kind, const std::string& detail) {
    Transaction transaction(*connection_);
    rows::insert_event(*connection_, session_id(uuid), utc_now(), kind, detail);
    transaction.commit();
}

void Store::end_session(std::int64_t id, SessionState state, const std::string& ended_at, const std::string& seal) {
    Statement(*connection_, "UPDATE session SET state = ?2, ended_at = ?3, seal_sha256 = ?4 WHERE id = ?1")
        .bind(id, name_of(state), ended_at, seal)
        .run();
}

std::string Store::seal(const std::string& uuid, const Verdict& verdict) {
    Transaction transaction(*connection_);
    const std::int64_t id = session_id(uuid);
    const std::string now = utc_now();
    rows::insert_verdict(*connection_, id, verdict);
    rows::insert_event(*connection_, id, now, "sealed", std::string(name_of(verdict.kind)));
    std::string seal = kestrel::compute_seal(*connection_, id, now);
    end_session(id, SessionState::sealed, now, seal);
    transaction.commit();
    return seal;
}

void Store::abort(const std::string& uuid, const std::string& reason) {
    Transaction transaction(*connection_);
    const std::int64_t id = session_id(uuid);
    const std::string now = utc_now();
    Statement(*connection_, "UPDATE replicate SET status = 'failed', detail = ?2 WHERE session_id = ?1 AND status = 'running'")
        .bind(id, "session aborted: " + reason)
        .run();
    rows::insert_event(*connection_, id, now, "aborted", reason);
    end_session(id, SessionState::aborted, now, "");
    transaction.commit();
}

void Store::backup_to(const std::string& target) {
    connection_->backup_to(target);
}

}  // namespace kestrel
