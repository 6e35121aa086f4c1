// The history of sessions: what the runner writes while it measures, and what everybody reads afterwards.
//
// Every function that writes is one transaction and durable when it returns (write-ahead log, synchronous=FULL), so a kill
// or power loss keeps what was reported and shows nothing half-written. A session is `running` until seal() or abort(), and
// accepts no rows after that; the schema enforces it for any SQLite client (store/schema_v1.cpp).
//
// Errors: Error(storage) for the file, the disk and refused rows, with advice; Error(usage) for a session that cannot be found.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/record/record.hpp"
#include "store/sqlite.hpp"

namespace kestrel {

struct SessionFilter {
    std::optional<std::string> experiment;
    std::optional<SessionState> state;
    std::optional<std::string> workload_sha256;
    int limit = 0;  // newest first; 0 = all
};

struct LedgerFilter {
    std::string workload_sha256 = {};  // empty: all
    std::string host = {};
    std::string device = {};
    int limit = 0;  // 0: all
};

// For one thread at a time; any number of processes may read while one writes.
class Store {
  public:
    // read_write creates the file, its directory and the schema, or upgrades the schema. Refuses network filesystems.
    explicit Store(const std::string& path, OpenMode mode = OpenMode::read_write);

    [[nodiscard]] const std::string& path() const { return connection_->path(); }

    // Records the session as running: its plan, place, workload, environment, artifacts and those arms whose artifact_sha256
    // is set; and the event "opened". An empty started_at means now. The plan's hash must be that of its canonical JSON.
    // Replicates, windows, events and verdict come later and must be empty here (std::invalid_argument).
    void begin_session(const Session& session);

    // Adds an arm left out above, once its effective switches are known. Its artifact must be one of the session's.
    void add_arm(const std::string& uuid, const Arm& arm);

    // The replicate's status is recorded as running, whatever the record says.
    void begin_replicate(const std::string& uuid, const Replicate& replicate);

    // The three windows of one round, all or none. They need a running replicate and the arms they name. Throws
    // std::invalid_argument unless they are three windows of one round.
    void add_round(const std::string& uuid, const std::vector<Window>& windows);

    // The replicate's end: status is one of "finished", "crashed", "hung", "failed". Its load order must be as begun.
    void finish_replicate(const std::string& uuid, const Replicate& replicate);

    // Numbers and dates the event.
    void add_event(const std::string& uuid, const std::string& kind, const std::string& detail);

    // Ends the session with its verdict: the event "sealed", the two comparisons (base with candidate, base with control), the
    // verdict and the seal over all rows. All three arms must be known and no replicate running.
    // Returns the seal, for logs outside this database.
    std::string seal(const std::string& uuid, const Verdict& verdict);

    // Ends the session without a verdict: closes running replicates as "failed" and records the event "aborted".
    void abort(const std::string& uuid, const std::string& reason);

    // Sessions recorded as running, oldest first. Whoever holds the device's lock knows that those of its host and device are
    // leftovers of a killed runner, and calls abort() for them.
    [[nodiscard]] std::vector<SessionSummary> running_sessions();

    // A full UUID, or a prefix of one that only one session has; returns the full UUID.
    [[nodiscard]] std::string resolve(const std::string& uuid_or_prefix);

    // Everything recorded. Arms not yet known have an empty artifact_sha256.
    [[nodiscard]] Session load_session(const std::string& uuid_or_prefix);

    // Newest first.
    [[nodiscard]] std::vector<SessionSummary> list_sessions(const SessionFilter& filter = {});

    // One entry for each sealed session, newest first.
    [[nodiscard]] std::vector<LedgerEntry> ledger(const LedgerFilter& filter);
    [[nodiscard]] std::vector<LedgerEntry> ledger() { return ledger({}); }

    // The seal of the rows as they are now; for a sealed or aborted session.
    [[nodiscard]] std::string compute_seal(const std::string& uuid_or_prefix);

    // True if the rows are those that were sealed. Throws Error(invalid) for a session that is not sealed.
    [[nodiscard]] bool verify_seal(const std::string& uuid_or_prefix);

    // Everything wrong with the file, its references, its plans' hashes and its seals, one sentence each; empty if nothing is.
    [[nodiscard]] std::vector<std::string> verify();

    // A consistent copy in a new file, even while a session is running.
    void backup_to(const std::string& target);

  private:
    // The local key of a session for writing; throws Error(usage) if there is none.
    [[nodiscard]] std::int64_t session_id(const std::string& uuid);
    void end_session(std::int64_t id, SessionState state, const std::string& ended_at, const std::string& seal);

    std::unique_ptr<Connection> connection_;  // at a fixed address: statements point to it
};

}  // namespace kestrel
