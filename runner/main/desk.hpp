// Where sessions are run from: the device's lock, the database, and the way from a command line to a session in it.
#pragma once

#include <string>

#include "runner/main/commands.hpp"
#include "runner/platform/lock.hpp"
#include "runner/session/supervisor.hpp"
#include "store/repository.hpp"

namespace kestrel::cli {

// The experiment's file, or an ad-hoc one, its policy, and what the command line overrides. Throws Error(usage).
[[nodiscard]] session::RunRequest request_for(const CommonOptions& common, const RunOptions& options);

class Desk {
  public:
    // Takes the device's lock, opens the database and closes the sessions that a killed runner left open.
    explicit Desk(const std::string& database);

    [[nodiscard]] session::Preparation prepare(const session::RunRequest& request) const { return session::prepare(request); }

    // Earlier sealed sessions of the same workload, host, device, engine and number of super-rounds, newest first.
    [[nodiscard]] std::vector<LedgerEntry> earlier(const Session& session, int super_rounds);

    // Both ask the ledger how long the session has to be.
    [[nodiscard]] session::PlannedSession plan(session::RunRequest request, const session::Preparation& preparation);
    // Runs to the seal and returns what was stored. Shows progress on standard error unless `quiet`.
    [[nodiscard]] Session run(session::RunRequest request, const session::Preparation& preparation, bool quiet);

    [[nodiscard]] Store& store() { return store_; }
    [[nodiscard]] const platform::DeviceLock& lock() const { return lock_; }

  private:
    void ask_ledger(session::RunRequest& request);

    platform::DeviceLock lock_;
    Store store_;
};

}  // namespace kestrel::cli
