#include "store/schema_v1.hpp"

#include <array>
#include <string_view>

namespace kestrel {
namespace {

// Local integer keys join the tables; a UUID or a SHA-256 is what a row is called outside this file.
//
// A comparison names its arms by (session, role). It has one session column for both, so no row can hold arms of two
// sessions; that is the point of the table, and the verdict hangs on it.
//
// Columns of JSON are not checked by json_valid(): SQLite 3.40 refuses it in a schema while trusted_schema is off.
constexpr std::string_view tables = R"sql(
CREATE TABLE manifest(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  sha256 TEXT NOT NULL UNIQUE CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
  json TEXT NOT NULL
) STRICT;

CREATE TABLE artifact(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  sha256 TEXT NOT NULL UNIQUE CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  engine_name TEXT NOT NULL,
  manifest_id INTEGER NOT NULL REFERENCES manifest(id)
) STRICT;

CREATE TABLE environment(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  sha256 TEXT NOT NULL CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
  facts TEXT NOT NULL,
  UNIQUE (sha256, facts)
) STRICT;

CREATE TABLE workload(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  json TEXT NOT NULL UNIQUE,
  sha256 TEXT NOT NULL CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
  model_name TEXT NOT NULL
) STRICT;
CREATE INDEX workload_by_sha256 ON workload(sha256);

CREATE TABLE output(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  digest TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE session(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  uuid TEXT NOT NULL UNIQUE CHECK (length(uuid) = 36 AND uuid NOT GLOB '*[^0-9a-f-]*'),
  state TEXT NOT NULL CHECK (state IN ('running', 'sealed', 'aborted')),
  started_at TEXT NOT NULL,
  ended_at TEXT NOT NULL,
  host TEXT NOT NULL,
  device TEXT NOT NULL,
  runner_version TEXT NOT NULL,
  seal_sha256 TEXT NOT NULL,
  place_kind TEXT NOT NULL CHECK (place_kind IN ('define', 'flag', 'source file', 'runtime switch', 'commit step', 'none')),
  place_name TEXT NOT NULL,
  place_base TEXT NOT NULL,
  place_candidate TEXT NOT NULL,
  place_changed_objects TEXT NOT NULL,
  plan_sha256 TEXT NOT NULL CHECK (length(plan_sha256) = 64 AND plan_sha256 NOT GLOB '*[^0-9a-f]*'),
  plan TEXT NOT NULL,
  experiment TEXT NOT NULL,
  experiment_version INTEGER NOT NULL,
  workload_id INTEGER NOT NULL REFERENCES workload(id),
  environment_id INTEGER NOT NULL REFERENCES environment(id),
  CHECK ((state = 'running') = (ended_at = '')),
  CHECK ((state = 'sealed') = (length(seal_sha256) = 64)),
  CHECK (state = 'sealed' OR seal_sha256 = '')
) STRICT;
CREATE INDEX session_by_experiment ON session(experiment, started_at);
CREATE INDEX session_by_workload ON session(workload_id, host, started_at);
CREATE INDEX session_by_start ON session(started_at);

CREATE TABLE registration(
  session_id INTEGER NOT NULL REFERENCES session(id),
  ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
  artifact_id INTEGER NOT NULL REFERENCES artifact(id),
  seen_path TEXT NOT NULL,
  stored_path TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  dirty INTEGER NOT NULL CHECK (dirty IN (0, 1)),
  PRIMARY KEY (session_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE arm(
  session_id INTEGER NOT NULL REFERENCES session(id),
  role TEXT NOT NULL CHECK (role IN ('base', 'control', 'candidate')),
  artifact_id INTEGER NOT NULL REFERENCES artifact(id),
  switches TEXT NOT NULL,
  effective_switches TEXT NOT NULL,
  borrowed_memory INTEGER NOT NULL CHECK (borrowed_memory IN (0, 1)),
  PRIMARY KEY (session_id, role)
) STRICT, WITHOUT ROWID;
CREATE INDEX arm_by_artifact ON arm(artifact_id);

CREATE TABLE replicate(
  session_id INTEGER NOT NULL REFERENCES session(id),
  replicate INTEGER NOT NULL CHECK (replicate >= 0),
  worker_pid INTEGER NOT NULL,
  load_order TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'finished', 'crashed', 'hung', 'failed')),
  detail TEXT NOT NULL,
  state_digest TEXT NOT NULL,
  distinct_tokens INTEGER NOT NULL CHECK (distinct_tokens >= 0),
  PRIMARY KEY (session_id, replicate)
) STRICT, WITHOUT ROWID;

-- One arm's window in one round. token_ns: each token's time in ns as unsigned LEB128 (store/codec.hpp).
CREATE TABLE round(
  session_id INTEGER NOT NULL,
  replicate INTEGER NOT NULL,
  super_round INTEGER NOT NULL CHECK (super_round >= 0),
  round INTEGER NOT NULL CHECK (round BETWEEN 0 AND 5),
  slot INTEGER NOT NULL CHECK (slot BETWEEN 0 AND 2),
  arm TEXT NOT NULL,
  started_ns INTEGER NOT NULL,
  window_ns INTEGER NOT NULL CHECK (window_ns >= 0),
  token_ns BLOB NOT NULL,
  output_id INTEGER NOT NULL REFERENCES output(id),
  PRIMARY KEY (session_id, replicate, super_round, round, slot),
  FOREIGN KEY (session_id, replicate) REFERENCES replicate(session_id, replicate),
  FOREIGN KEY (session_id, arm) REFERENCES arm(session_id, role)
) STRICT, WITHOUT ROWID;

CREATE TABLE event(
  session_id INTEGER NOT NULL REFERENCES session(id),
  sequence INTEGER NOT NULL CHECK (sequence >= 0),
  at TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind <> ''),
  detail TEXT NOT NULL,
  PRIMARY KEY (session_id, sequence)
) STRICT, WITHOUT ROWID;

-- d = ln(base / other arm) and its interval; ratio = exp(d). NULL stands for "not a number".
CREATE TABLE comparison(
  session_id INTEGER NOT NULL REFERENCES session(id),
  base_arm TEXT NOT NULL CHECK (base_arm = 'base'),
  candidate_arm TEXT NOT NULL CHECK (candidate_arm IN ('candidate', 'control')),
  d REAL, lo REAL, hi REAL, confidence REAL, sd REAL,
  replicates INTEGER NOT NULL CHECK (replicates >= 0),
  ratio REAL, ratio_lo REAL, ratio_hi REAL,
  PRIMARY KEY (session_id, candidate_arm),
  FOREIGN KEY (session_id, base_arm) REFERENCES arm(session_id, role),
  FOREIGN KEY (session_id, candidate_arm) REFERENCES arm(session_id, role)
) STRICT, WITHOUT ROWID;

CREATE TABLE verdict(
  session_id INTEGER NOT NULL,
  candidate_arm TEXT NOT NULL CHECK (candidate_arm = 'candidate'),
  kind TEXT NOT NULL CHECK (kind IN ('INVALID', 'SAME', 'FASTER', 'SLOWER', 'UNDECIDED')),
  margin REAL, delta REAL,
  ratio REAL, ratio_lo REAL, ratio_hi REAL,
  reasons TEXT NOT NULL,
  estimate TEXT NOT NULL,
  PRIMARY KEY (session_id, candidate_arm),
  FOREIGN KEY (session_id, candidate_arm) REFERENCES comparison(session_id, candidate_arm)
) STRICT, WITHOUT ROWID;
)sql";

// Every table is append-only. `same` finds a row that NEW would collide with on any of the table's keys: INSERT OR REPLACE
// deletes such a row without firing delete triggers unless recursive_triggers is on, which it is not in a plain sqlite3
// shell, so the collision is refused before REPLACE can act.
struct Guard {
    std::string_view table;
    std::string_view same;
    bool update_allowed = false;  // then a trigger below says which
};
constexpr std::array<Guard, 13> guards{{
    {"manifest", "id = NEW.id OR sha256 = NEW.sha256"},
    {"artifact", "id = NEW.id OR sha256 = NEW.sha256"},
    {"environment", "id = NEW.id OR (sha256 = NEW.sha256 AND facts = NEW.facts)"},
    {"workload", "id = NEW.id OR json = NEW.json"},
    {"output", "id = NEW.id OR digest = NEW.digest"},
    {"session", "id = NEW.id OR uuid = NEW.uuid", true},
    {"registration", "session_id = NEW.session_id AND ordinal = NEW.ordinal"},
    {"arm", "session_id = NEW.session_id AND role = NEW.role"},
    {"replicate", "session_id = NEW.session_id AND replicate = NEW.replicate", true},
    {"round",
     "session_id = NEW.session_id AND replicate = NEW.replicate AND super_round = NEW.super_round AND round = NEW.round "
     "AND (slot = NEW.slot OR arm = NEW.arm)"},
    {"event", "session_id = NEW.session_id AND sequence = NEW.sequence"},
    {"comparison", "session_id = NEW.session_id AND candidate_arm = NEW.candidate_arm"},
    {"verdict", "session_id = NEW.session_id AND candidate_arm = NEW.candidate_arm"},
}};

std::string guard_triggers(const Guard& guard) {
    const std::string table(guard.table);
    const auto trigger = [&](const std::string& name, const std::string& when, const std::string& condition, const std::string& message) {
        return "CREATE TRIGGER " + table + "_" + name + " BEFORE " + when + " ON " + table + condition + " BEGIN SELECT RAISE(ABORT, '" +
               table + ": " + message + "'); END;\n";
    };
    std::string sql = trigger("keeps_rows", "INSERT", " WHEN EXISTS (SELECT 1 FROM " + table + " WHERE " + std::string(guard.same) + ")",
                              "refused, because this row is already recorded and records are never replaced");
    sql += trigger("no_delete", "DELETE", "", "DELETE is refused, because measurements are evidence and are never removed");
    if (!guard.update_allowed) sql += trigger("no_update", "UPDATE", "", "UPDATE is refused, because recorded rows never change");
    return sql;
}

// Rows of a session are accepted only while it runs. These conditions repeat the foreign keys, because a plain sqlite3
// shell does not enforce foreign keys by default. Sealing and aborting insert their event, comparison and verdict first
// and change the state last, in one transaction.
constexpr std::array<std::string_view, 7> session_tables{"registration", "arm", "replicate", "round", "event", "comparison", "verdict"};

std::string running_trigger(std::string_view table) {
    const std::string name(table);
    return "CREATE TRIGGER " + name + "_needs_running_session BEFORE INSERT ON " + name +
           " WHEN NOT EXISTS (SELECT 1 FROM session WHERE id = NEW.session_id AND state = 'running')"
           " BEGIN SELECT RAISE(ABORT, '" +
           name + ": refused, because the session is not running; a sealed or aborted session accepts no rows'); END;\n";
}

constexpr std::string_view rules = R"sql(
CREATE TRIGGER session_starts_running BEFORE INSERT ON session WHEN NEW.state IS NOT 'running'
BEGIN SELECT RAISE(ABORT, 'session: refused, because a session is recorded as running before it can end'); END;

CREATE TRIGGER session_only_ends BEFORE UPDATE ON session
WHEN NOT (OLD.state IS 'running' AND NEW.state IN ('sealed', 'aborted')
  AND NEW.id IS OLD.id AND NEW.uuid IS OLD.uuid AND NEW.started_at IS OLD.started_at AND NEW.host IS OLD.host
  AND NEW.device IS OLD.device AND NEW.runner_version IS OLD.runner_version AND NEW.place_kind IS OLD.place_kind
  AND NEW.place_name IS OLD.place_name AND NEW.place_base IS OLD.place_base AND NEW.place_candidate IS OLD.place_candidate
  AND NEW.place_changed_objects IS OLD.place_changed_objects AND NEW.plan_sha256 IS OLD.plan_sha256 AND NEW.plan IS OLD.plan
  AND NEW.experiment IS OLD.experiment AND NEW.experiment_version IS OLD.experiment_version
  AND NEW.workload_id IS OLD.workload_id AND NEW.environment_id IS OLD.environment_id)
BEGIN SELECT RAISE(ABORT, 'session: UPDATE is refused, because a session only ever changes from running to sealed or aborted'); END;

CREATE TRIGGER session_seals_with_verdict BEFORE UPDATE ON session
WHEN NEW.state IS 'sealed' AND NOT EXISTS (SELECT 1 FROM verdict WHERE session_id = OLD.id)
BEGIN SELECT RAISE(ABORT, 'session: refused, because a session without a verdict cannot be sealed'); END;

CREATE TRIGGER session_ends_after_replicates BEFORE UPDATE ON session
WHEN EXISTS (SELECT 1 FROM replicate WHERE session_id = OLD.id AND status = 'running')
BEGIN SELECT RAISE(ABORT, 'session: refused, because a replicate is still running'); END;

CREATE TRIGGER arm_needs_registration BEFORE INSERT ON arm
WHEN NOT EXISTS (SELECT 1 FROM registration WHERE session_id = NEW.session_id AND artifact_id = NEW.artifact_id)
BEGIN SELECT RAISE(ABORT, 'arm: refused, because its artifact is not registered in this session'); END;

CREATE TRIGGER replicate_starts_running BEFORE INSERT ON replicate WHEN NEW.status IS NOT 'running'
BEGIN SELECT RAISE(ABORT, 'replicate: refused, because a replicate is recorded as running before it can end'); END;

CREATE TRIGGER replicate_only_ends BEFORE UPDATE ON replicate
WHEN NOT (OLD.status IS 'running' AND NEW.status IN ('finished', 'crashed', 'hung', 'failed')
  AND NEW.session_id IS OLD.session_id AND NEW.replicate IS OLD.replicate AND NEW.load_order IS OLD.load_order
  AND EXISTS (SELECT 1 FROM session WHERE id = OLD.session_id AND state = 'running'))
BEGIN SELECT RAISE(ABORT, 'replicate: UPDATE is refused, because a replicate only changes once, from running to its end, while its session runs'); END;

CREATE TRIGGER round_needs_running_replicate BEFORE INSERT ON round
WHEN NOT EXISTS (SELECT 1 FROM replicate WHERE session_id = NEW.session_id AND replicate = NEW.replicate AND status = 'running')
BEGIN SELECT RAISE(ABORT, 'round: refused, because its replicate is not running in this session'); END;

CREATE TRIGGER round_needs_arm BEFORE INSERT ON round
WHEN NOT EXISTS (SELECT 1 FROM arm WHERE session_id = NEW.session_id AND role = NEW.arm)
BEGIN SELECT RAISE(ABORT, 'round: refused, because this session has no such arm'); END;

CREATE TRIGGER event_in_order BEFORE INSERT ON event
WHEN NEW.sequence IS NOT (SELECT coalesce(max(sequence) + 1, 0) FROM event WHERE session_id = NEW.session_id)
BEGIN SELECT RAISE(ABORT, 'event: refused, because events are numbered without gaps'); END;

CREATE TRIGGER comparison_within_session BEFORE INSERT ON comparison
WHEN (SELECT count(*) FROM arm WHERE session_id = NEW.session_id AND role IN (NEW.base_arm, NEW.candidate_arm)) <> 2
BEGIN SELECT RAISE(ABORT, 'comparison: refused, because both arms must belong to this one session; ratios across sessions do not exist'); END;

CREATE TRIGGER verdict_needs_comparison BEFORE INSERT ON verdict
WHEN NOT EXISTS (SELECT 1 FROM comparison WHERE session_id = NEW.session_id AND candidate_arm = NEW.candidate_arm)
BEGIN SELECT RAISE(ABORT, 'verdict: refused, because it belongs to a comparison of this session, which does not exist'); END;
)sql";

}  // namespace

std::string schema_v1() {
    std::string sql(tables);
    for (const Guard& guard : guards) sql += guard_triggers(guard);
    sql += rules;
    // Last, because SQLite in practice fires the newest trigger first, and this one's message explains the most.
    for (const auto table : session_tables) sql += running_trigger(table);
    return sql;
}

}  // namespace kestrel
