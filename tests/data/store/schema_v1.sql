-- A database as the program made it before telemetry was recorded (schema 1): one sealed session and one aborted session.
-- `.dump` of it, and the two numbers in the file's header that a dump leaves out.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE manifest(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  sha256 TEXT NOT NULL UNIQUE CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
  json TEXT NOT NULL
) STRICT;
INSERT INTO manifest VALUES(1,'3f7008a6f615cce65e7697ebc5dee6ccf1c15a9482d182e94659fb4a15f4d524','{"made":"base.so"}');
INSERT INTO manifest VALUES(2,'b7c5adf47785e0ceba6557963ddd35269867be0d5722fe50bb6972439e9ea7b8','{"made":"candidate.so"}');
CREATE TABLE artifact(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  sha256 TEXT NOT NULL UNIQUE CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  engine_name TEXT NOT NULL,
  manifest_id INTEGER NOT NULL REFERENCES manifest(id)
) STRICT;
INSERT INTO artifact VALUES(1,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',12442,'kestrel_cpu',1);
INSERT INTO artifact VALUES(2,'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',12443,'kestrel_cpu',2);
CREATE TABLE environment(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  sha256 TEXT NOT NULL CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
  facts TEXT NOT NULL,
  UNIQUE (sha256, facts)
) STRICT;
INSERT INTO environment VALUES(1,'2222222222222222222222222222222222222222222222222222222222222222','{"cpu.model":"Example","governor":""}');
CREATE TABLE workload(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  json TEXT NOT NULL UNIQUE,
  sha256 TEXT NOT NULL CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
  model_name TEXT NOT NULL
) STRICT;
INSERT INTO workload VALUES(1,'{"attention_layers":16,"gdn_layers":48,"launch_mode":"cpu","layers":64,"layout_id":"rows.v1","model_name":"m.toml","model_path":"/models/m.toml","position":7,"sha256":"1111111111111111111111111111111111111111111111111111111111111111","threads":2,"tokens":[5,4,3,2],"vocab":1000,"weights_digest":"w"}','1111111111111111111111111111111111111111111111111111111111111111','m.toml');
CREATE TABLE output(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  digest TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO output VALUES(1,'5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9');
INSERT INTO output VALUES(2,'6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b');
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
INSERT INTO session VALUES(1,'11111111-0000-4000-8000-000000000001','sealed','2025-01-31T23:59:59.123Z','2026-11-30T09:38:03.595Z','perf-1','cpu: Example µ-arch','0.1.0','44c40113c40b0a5d27e4a363c21320c2133f47568e6ae53f300b78d22e461e3d','runtime switch','VLLM_CUDA_GDN_DELTA','ref','(unset)','["gdn.o","it''s \"quoted\".o"]','165e200739ae09f3b7a0c2b32d6b12cc01287126905c5fd4da2315c492d02d2d','{"confidence":0.95,"control_confidence":0.99,"experiment":"gdn-register","experiment_version":3,"load_orders":[["candidate","base","control"],["base","control","candidate"]],"margin":0.30000000000000004,"output_rule":"tolerance 1e-5","paddings":[0,4096],"position":0,"replicates":2,"schedules":[[["base","control","candidate","control","candidate","base","candidate","base","control","base","control","candidate","control","candidate","base","candidate","base","control"]],[["base","control","candidate","control","candidate","base","candidate","base","control","base","control","candidate","control","candidate","base","candidate","base","control"]]],"seed":"18446744073709551614","super_rounds":1,"threads":0,"tokens":16}','gdn-register',3,1,1);
INSERT INTO session VALUES(2,'11111111-0000-4000-8000-000000000002','aborted','2025-01-31T23:59:59.123Z','2026-11-30T09:38:03.608Z','perf-1','cpu: Example µ-arch','0.1.0','','runtime switch','VLLM_CUDA_GDN_DELTA','ref','(unset)','["gdn.o","it''s \"quoted\".o"]','165e200739ae09f3b7a0c2b32d6b12cc01287126905c5fd4da2315c492d02d2d','{"confidence":0.95,"control_confidence":0.99,"experiment":"gdn-register","experiment_version":3,"load_orders":[["candidate","base","control"],["base","control","candidate"]],"margin":0.30000000000000004,"output_rule":"tolerance 1e-5","paddings":[0,4096],"position":0,"replicates":2,"schedules":[[["base","control","candidate","control","candidate","base","candidate","base","control","base","control","candidate","control","candidate","base","candidate","base","control"]],[["base","control","candidate","control","candidate","base","candidate","base","control","base","control","candidate","control","candidate","base","candidate","base","control"]]],"seed":"18446744073709551614","super_rounds":1,"threads":0,"tokens":16}','gdn-register',3,1,1);
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
INSERT INTO registration VALUES(1,0,1,'/seen/base.so','/stored/base.so','0123abcd',0);
INSERT INTO registration VALUES(1,1,2,'/seen/candidate.so','/stored/candidate.so','0123abcd',1);
INSERT INTO registration VALUES(2,0,1,'/seen/base.so','/stored/base.so','0123abcd',0);
INSERT INTO registration VALUES(2,1,2,'/seen/candidate.so','/stored/candidate.so','0123abcd',1);
CREATE TABLE arm(
  session_id INTEGER NOT NULL REFERENCES session(id),
  role TEXT NOT NULL CHECK (role IN ('base', 'control', 'candidate')),
  artifact_id INTEGER NOT NULL REFERENCES artifact(id),
  switches TEXT NOT NULL,
  effective_switches TEXT NOT NULL,
  borrowed_memory INTEGER NOT NULL CHECK (borrowed_memory IN (0, 1)),
  PRIMARY KEY (session_id, role)
) STRICT, WITHOUT ROWID;
INSERT INTO arm VALUES(1,'base',1,'[{"name":"S","value":"ref"}]','[{"name":"S","value":"ref"},{"name":"T","value":""}]',1);
INSERT INTO arm VALUES(1,'candidate',2,'[]','[{"name":"S","value":"reg"}]',0);
INSERT INTO arm VALUES(1,'control',1,'[{"name":"S","value":"ref"}]','[{"name":"S","value":"ref"}]',1);
INSERT INTO arm VALUES(2,'base',1,'[{"name":"S","value":"ref"}]','[{"name":"S","value":"ref"},{"name":"T","value":""}]',1);
INSERT INTO arm VALUES(2,'candidate',2,'[]','[{"name":"S","value":"reg"}]',0);
INSERT INTO arm VALUES(2,'control',1,'[{"name":"S","value":"ref"}]','[{"name":"S","value":"ref"}]',1);
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
INSERT INTO replicate VALUES(1,0,4000,'["candidate","base","control"]','finished','','["s0","s1","s2"]',9);
INSERT INTO replicate VALUES(1,1,4001,'["base","control","candidate"]','crashed','signal 11; last message ''x''','["s0","s1","s2"]',9);
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
INSERT INTO round VALUES(1,0,0,0,0,'base',0,30000000,X'007f8001fface204ffffffffffffffff7f',1);
INSERT INTO round VALUES(1,0,0,0,1,'control',0,30000001,X'007f8001fface204ffffffffffffffff7f',1);
INSERT INTO round VALUES(1,0,0,0,2,'candidate',0,30000002,X'007f8001fface204ffffffffffffffff7f',1);
INSERT INTO round VALUES(1,0,0,1,0,'control',1000,30000000,X'007f8001fface204ffffffffffffffff7f',2);
INSERT INTO round VALUES(1,0,0,1,1,'candidate',1000,30000001,X'007f8001fface204ffffffffffffffff7f',2);
INSERT INTO round VALUES(1,0,0,1,2,'base',1000,30000002,X'007f8001fface204ffffffffffffffff7f',2);
INSERT INTO round VALUES(1,1,0,0,0,'base',0,30000000,X'007f8001fface204ffffffffffffffff7f',1);
INSERT INTO round VALUES(1,1,0,0,1,'control',0,30000001,X'007f8001fface204ffffffffffffffff7f',1);
INSERT INTO round VALUES(1,1,0,0,2,'candidate',0,30000002,X'007f8001fface204ffffffffffffffff7f',1);
INSERT INTO round VALUES(1,1,0,1,0,'control',1000,30000000,X'007f8001fface204ffffffffffffffff7f',2);
INSERT INTO round VALUES(1,1,0,1,1,'candidate',1000,30000001,X'007f8001fface204ffffffffffffffff7f',2);
INSERT INTO round VALUES(1,1,0,1,2,'base',1000,30000002,X'007f8001fface204ffffffffffffffff7f',2);
CREATE TABLE event(
  session_id INTEGER NOT NULL REFERENCES session(id),
  sequence INTEGER NOT NULL CHECK (sequence >= 0),
  at TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind <> ''),
  detail TEXT NOT NULL,
  PRIMARY KEY (session_id, sequence)
) STRICT, WITHOUT ROWID;
INSERT INTO event VALUES(1,0,'2025-01-31T23:59:59.123Z','opened','plan 165e200739ae09f3b7a0c2b32d6b12cc01287126905c5fd4da2315c492d02d2d');
INSERT INTO event VALUES(1,1,'2026-11-30T09:38:03.595Z','rehash','ok');
INSERT INTO event VALUES(1,2,'2026-11-30T09:38:03.595Z','sealed','FASTER');
INSERT INTO event VALUES(2,0,'2025-01-31T23:59:59.123Z','opened','plan 165e200739ae09f3b7a0c2b32d6b12cc01287126905c5fd4da2315c492d02d2d');
INSERT INTO event VALUES(2,1,'2026-11-30T09:38:03.608Z','aborted','stopped by the user; finished rounds are kept');
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
INSERT INTO comparison VALUES(1,'base','candidate',0.050000000000000002775,0.040000000000000000832,0.059999999999999997779,0.94999999999999995559,0.0010000000000000000208,2,1.0512710963760241167,1.0408107741923882105,1.0618365465453596385);
INSERT INTO comparison VALUES(1,'base','control',-1.000000000000000025e-300,-1e999,0.33333333333333331482,0.98999999999999999111,0.0020000000000000000416,2,1.0,0.0,1.3956124250860895141);
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
INSERT INTO verdict VALUES(1,'candidate','FASTER',0.010000000000000000208,0.009950330853168083342,1.0512710963760241167,1.0408107741923882105,1.0618365465453596385,'["TAIL: the p99 ratio disagrees","CONTROL_BIAS: ≠ 0"]','{"arms":[{"arm":"base","max_ms":1.9,"mean_ms":1.5,"median_ms":1.4,"min_ms":1.3,"p99_token_ms":2.5,"spread_percent":46.2,"tokens_per_second":666.6,"windows":6},{"arm":"control","max_ms":1.9,"mean_ms":1.5,"median_ms":1.4,"min_ms":1.3,"p99_token_ms":2.5,"spread_percent":46.2,"tokens_per_second":666.6,"windows":6},{"arm":"candidate","max_ms":1.9,"mean_ms":1.5,"median_ms":1.4,"min_ms":1.3,"p99_token_ms":2.5,"spread_percent":46.2,"tokens_per_second":666.6,"windows":6}],"candidate":{"confidence":0.95,"d":0.05,"hi":0.06,"lo":0.04,"replicates":2,"sd":0.001},"control":{"confidence":0.99,"d":-1e-300,"hi":0.3333333333333333,"lo":"-inf","replicates":2,"sd":0.002},"mean_ratio":1.051,"p99_ratio":1.0,"replicate_control_d":[0.0,-0.0001],"replicate_d":[0.051,0.049],"saved_ms_per_token":0.0}');
CREATE INDEX workload_by_sha256 ON workload(sha256);
CREATE INDEX session_by_experiment ON session(experiment, started_at);
CREATE INDEX session_by_workload ON session(workload_id, host, started_at);
CREATE INDEX session_by_start ON session(started_at);
CREATE INDEX arm_by_artifact ON arm(artifact_id);
CREATE TRIGGER manifest_keeps_rows BEFORE INSERT ON manifest WHEN EXISTS (SELECT 1 FROM manifest WHERE id = NEW.id OR sha256 = NEW.sha256) BEGIN SELECT RAISE(ABORT, 'manifest: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER manifest_no_delete BEFORE DELETE ON manifest BEGIN SELECT RAISE(ABORT, 'manifest: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER manifest_no_update BEFORE UPDATE ON manifest BEGIN SELECT RAISE(ABORT, 'manifest: UPDATE is refused, because recorded rows never change'); END;
CREATE TRIGGER artifact_keeps_rows BEFORE INSERT ON artifact WHEN EXISTS (SELECT 1 FROM artifact WHERE id = NEW.id OR sha256 = NEW.sha256) BEGIN SELECT RAISE(ABORT, 'artifact: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER artifact_no_delete BEFORE DELETE ON artifact BEGIN SELECT RAISE(ABORT, 'artifact: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER artifact_no_update BEFORE UPDATE ON artifact BEGIN SELECT RAISE(ABORT, 'artifact: UPDATE is refused, because recorded rows never change'); END;
CREATE TRIGGER environment_keeps_rows BEFORE INSERT ON environment WHEN EXISTS (SELECT 1 FROM environment WHERE id = NEW.id OR (sha256 = NEW.sha256 AND facts = NEW.facts)) BEGIN SELECT RAISE(ABORT, 'environment: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER environment_no_delete BEFORE DELETE ON environment BEGIN SELECT RAISE(ABORT, 'environment: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER environment_no_update BEFORE UPDATE ON environment BEGIN SELECT RAISE(ABORT, 'environment: UPDATE is refused, because recorded rows never change'); END;
CREATE TRIGGER workload_keeps_rows BEFORE INSERT ON workload WHEN EXISTS (SELECT 1 FROM workload WHERE id = NEW.id OR json = NEW.json) BEGIN SELECT RAISE(ABORT, 'workload: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER workload_no_delete BEFORE DELETE ON workload BEGIN SELECT RAISE(ABORT, 'workload: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER workload_no_update BEFORE UPDATE ON workload BEGIN SELECT RAISE(ABORT, 'workload: UPDATE is refused, because recorded rows never change'); END;
CREATE TRIGGER output_keeps_rows BEFORE INSERT ON output WHEN EXISTS (SELECT 1 FROM output WHERE id = NEW.id OR digest = NEW.digest) BEGIN SELECT RAISE(ABORT, 'output: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER output_no_delete BEFORE DELETE ON output BEGIN SELECT RAISE(ABORT, 'output: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER output_no_update BEFORE UPDATE ON output BEGIN SELECT RAISE(ABORT, 'output: UPDATE is refused, because recorded rows never change'); END;
CREATE TRIGGER session_keeps_rows BEFORE INSERT ON session WHEN EXISTS (SELECT 1 FROM session WHERE id = NEW.id OR uuid = NEW.uuid) BEGIN SELECT RAISE(ABORT, 'session: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER session_no_delete BEFORE DELETE ON session BEGIN SELECT RAISE(ABORT, 'session: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER registration_keeps_rows BEFORE INSERT ON registration WHEN EXISTS (SELECT 1 FROM registration WHERE session_id = NEW.session_id AND ordinal = NEW.ordinal) BEGIN SELECT RAISE(ABORT, 'registration: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER registration_no_delete BEFORE DELETE ON registration BEGIN SELECT RAISE(ABORT, 'registration: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER registration_no_update BEFORE UPDATE ON registration BEGIN SELECT RAISE(ABORT, 'registration: UPDATE is refused, because recorded rows never change'); END;
CREATE TRIGGER arm_keeps_rows BEFORE INSERT ON arm WHEN EXISTS (SELECT 1 FROM arm WHERE session_id = NEW.session_id AND role = NEW.role) BEGIN SELECT RAISE(ABORT, 'arm: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER arm_no_delete BEFORE DELETE ON arm BEGIN SELECT RAISE(ABORT, 'arm: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER arm_no_update BEFORE UPDATE ON arm BEGIN SELECT RAISE(ABORT, 'arm: UPDATE is refused, because recorded rows never change'); END;
CREATE TRIGGER replicate_keeps_rows BEFORE INSERT ON replicate WHEN EXISTS (SELECT 1 FROM replicate WHERE session_id = NEW.session_id AND replicate = NEW.replicate) BEGIN SELECT RAISE(ABORT, 'replicate: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER replicate_no_delete BEFORE DELETE ON replicate BEGIN SELECT RAISE(ABORT, 'replicate: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER round_keeps_rows BEFORE INSERT ON round WHEN EXISTS (SELECT 1 FROM round WHERE session_id = NEW.session_id AND replicate = NEW.replicate AND super_round = NEW.super_round AND round = NEW.round AND (slot = NEW.slot OR arm = NEW.arm)) BEGIN SELECT RAISE(ABORT, 'round: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER round_no_delete BEFORE DELETE ON round BEGIN SELECT RAISE(ABORT, 'round: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER round_no_update BEFORE UPDATE ON round BEGIN SELECT RAISE(ABORT, 'round: UPDATE is refused, because recorded rows never change'); END;
CREATE TRIGGER event_keeps_rows BEFORE INSERT ON event WHEN EXISTS (SELECT 1 FROM event WHERE session_id = NEW.session_id AND sequence = NEW.sequence) BEGIN SELECT RAISE(ABORT, 'event: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'event: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER event_no_update BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'event: UPDATE is refused, because recorded rows never change'); END;
CREATE TRIGGER comparison_keeps_rows BEFORE INSERT ON comparison WHEN EXISTS (SELECT 1 FROM comparison WHERE session_id = NEW.session_id AND candidate_arm = NEW.candidate_arm) BEGIN SELECT RAISE(ABORT, 'comparison: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER comparison_no_delete BEFORE DELETE ON comparison BEGIN SELECT RAISE(ABORT, 'comparison: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER comparison_no_update BEFORE UPDATE ON comparison BEGIN SELECT RAISE(ABORT, 'comparison: UPDATE is refused, because recorded rows never change'); END;
CREATE TRIGGER verdict_keeps_rows BEFORE INSERT ON verdict WHEN EXISTS (SELECT 1 FROM verdict WHERE session_id = NEW.session_id AND candidate_arm = NEW.candidate_arm) BEGIN SELECT RAISE(ABORT, 'verdict: refused, because this row is already recorded and records are never replaced'); END;
CREATE TRIGGER verdict_no_delete BEFORE DELETE ON verdict BEGIN SELECT RAISE(ABORT, 'verdict: DELETE is refused, because measurements are evidence and are never removed'); END;
CREATE TRIGGER verdict_no_update BEFORE UPDATE ON verdict BEGIN SELECT RAISE(ABORT, 'verdict: UPDATE is refused, because recorded rows never change'); END;
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
CREATE TRIGGER registration_needs_running_session BEFORE INSERT ON registration WHEN NOT EXISTS (SELECT 1 FROM session WHERE id = NEW.session_id AND state = 'running') BEGIN SELECT RAISE(ABORT, 'registration: refused, because the session is not running; a sealed or aborted session accepts no rows'); END;
CREATE TRIGGER arm_needs_running_session BEFORE INSERT ON arm WHEN NOT EXISTS (SELECT 1 FROM session WHERE id = NEW.session_id AND state = 'running') BEGIN SELECT RAISE(ABORT, 'arm: refused, because the session is not running; a sealed or aborted session accepts no rows'); END;
CREATE TRIGGER replicate_needs_running_session BEFORE INSERT ON replicate WHEN NOT EXISTS (SELECT 1 FROM session WHERE id = NEW.session_id AND state = 'running') BEGIN SELECT RAISE(ABORT, 'replicate: refused, because the session is not running; a sealed or aborted session accepts no rows'); END;
CREATE TRIGGER round_needs_running_session BEFORE INSERT ON round WHEN NOT EXISTS (SELECT 1 FROM session WHERE id = NEW.session_id AND state = 'running') BEGIN SELECT RAISE(ABORT, 'round: refused, because the session is not running; a sealed or aborted session accepts no rows'); END;
CREATE TRIGGER event_needs_running_session BEFORE INSERT ON event WHEN NOT EXISTS (SELECT 1 FROM session WHERE id = NEW.session_id AND state = 'running') BEGIN SELECT RAISE(ABORT, 'event: refused, because the session is not running; a sealed or aborted session accepts no rows'); END;
CREATE TRIGGER comparison_needs_running_session BEFORE INSERT ON comparison WHEN NOT EXISTS (SELECT 1 FROM session WHERE id = NEW.session_id AND state = 'running') BEGIN SELECT RAISE(ABORT, 'comparison: refused, because the session is not running; a sealed or aborted session accepts no rows'); END;
CREATE TRIGGER verdict_needs_running_session BEFORE INSERT ON verdict WHEN NOT EXISTS (SELECT 1 FROM session WHERE id = NEW.session_id AND state = 'running') BEGIN SELECT RAISE(ABORT, 'verdict: refused, because the session is not running; a sealed or aborted session accepts no rows'); END;
COMMIT;
PRAGMA application_id=1801544241;
PRAGMA user_version=1;
