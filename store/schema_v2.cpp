#include "store/schema_v2.hpp"

namespace kestrel {

// The same rules as for every table of version 1, and for the same reasons (schema_v1.cpp): rows are only ever added, to a session and a
// replicate that run. `sources` is JSON of Reading::sources, keys sorted.
std::string schema_v2() {
    return R"sql(
CREATE TABLE telemetry(
  session_id INTEGER NOT NULL,
  replicate INTEGER NOT NULL,
  super_round INTEGER NOT NULL CHECK (super_round >= -1),
  round INTEGER NOT NULL CHECK (round BETWEEN -1 AND 5),
  at_ns INTEGER NOT NULL,
  sources TEXT NOT NULL,
  PRIMARY KEY (session_id, replicate, super_round, round),
  FOREIGN KEY (session_id, replicate) REFERENCES replicate(session_id, replicate),
  CHECK ((super_round = -1) = (round = -1))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER telemetry_keeps_rows BEFORE INSERT ON telemetry
WHEN EXISTS (SELECT 1 FROM telemetry WHERE session_id = NEW.session_id AND replicate = NEW.replicate
  AND super_round = NEW.super_round AND round = NEW.round)
BEGIN SELECT RAISE(ABORT, 'telemetry: refused, because this row is already recorded and records are never replaced'); END;

CREATE TRIGGER telemetry_no_delete BEFORE DELETE ON telemetry
BEGIN SELECT RAISE(ABORT, 'telemetry: DELETE is refused, because measurements are evidence and are never removed'); END;

CREATE TRIGGER telemetry_no_update BEFORE UPDATE ON telemetry
BEGIN SELECT RAISE(ABORT, 'telemetry: UPDATE is refused, because recorded rows never change'); END;

CREATE TRIGGER telemetry_needs_running_replicate BEFORE INSERT ON telemetry
WHEN NOT EXISTS (SELECT 1 FROM replicate WHERE session_id = NEW.session_id AND replicate = NEW.replicate AND status = 'running')
BEGIN SELECT RAISE(ABORT, 'telemetry: refused, because its replicate is not running in this session'); END;

CREATE TRIGGER telemetry_needs_running_session BEFORE INSERT ON telemetry
WHEN NOT EXISTS (SELECT 1 FROM session WHERE id = NEW.session_id AND state = 'running')
BEGIN SELECT RAISE(ABORT, 'telemetry: refused, because the session is not running; a sealed or aborted session accepts no rows'); END;
)sql";
}

}  // namespace kestrel
