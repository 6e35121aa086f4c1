#include "runner/main/desk.hpp"

#include <spdlog/spdlog.h>

#include <random>

#include "runner/main/cache_settings.hpp"
#include "runner/main/paths.hpp"
#include "runner/main/progress.hpp"
#include "runner/platform/host.hpp"
#include "runner/platform/process.hpp"
#include "runner/record/names.hpp"
#include "runner/session/arm_copies.hpp"
#include "runner/stats/ledger.hpp"
#include "store/stamp.hpp"

namespace kestrel::cli {
namespace {

// The session's steps, straight into the database.
class StoreSink : public session::SessionSink {
  public:
    StoreSink(Store& store, std::string uuid) : store_(&store), uuid_(std::move(uuid)) {}
    void begin(const Session& session) override { store_->begin_session(session); }
    void begin_replicate(const Replicate& replicate) override { store_->begin_replicate(uuid_, replicate); }
    void round(const std::vector<Window>& windows, const std::vector<Reading>& readings) override {
        store_->add_round(uuid_, windows, readings);
    }
    void finish_replicate(const Replicate& replicate) override { store_->finish_replicate(uuid_, replicate); }
    void event(const std::string& kind, const std::string& detail) override {
        store_->add_event(uuid_, kind, detail);
        if (kind == session::no_cache_event) spdlog::warn("{}: {}", kind, detail);
    }
    void seal(const Verdict& verdict) override { store_->seal(uuid_, verdict); }
    void abort(const std::string& reason) override { store_->abort(uuid_, reason); }

  private:
    Store* store_;
    std::string uuid_;
};

void require(bool given, const std::string& what) {
    if (!given) throw Error(ExitCode::usage, "run needs " + what + "; see 'kestrel-ab run --help'");
}

session::Experiment experiment_from(const RunOptions& options) {
    session::Experiment experiment;
    if (options.experiment.empty()) {
        require(!options.base.empty() && !options.candidate.empty(), "an EXPERIMENT, or --base and --candidate");
        require(!options.model.empty(), "--model");
        experiment.name = "ad-hoc";
    } else {
        experiment = session::read_experiment(experiment_path(options.experiment));
    }
    if (!options.base.empty()) experiment.base.engine = options.base;
    if (!options.candidate.empty()) experiment.candidate.engine = options.candidate;
    if (!options.model.empty()) experiment.model = options.model;
    const auto override_switches = [](const std::vector<std::string>& texts, std::vector<SwitchSetting>& switches) {
        if (!texts.empty()) switches.clear();
        for (const std::string& text : texts) switches.push_back(session::parse_switch(text));
    };
    // With other arms it is no longer the experiment of that name, and must not join its history.
    const bool other_arms =
        !(options.base.empty() && options.candidate.empty() && options.base_switches.empty() && options.candidate_switches.empty());
    if (other_arms) experiment.name = "ad-hoc";
    override_switches(options.base_switches, experiment.base.switches);
    override_switches(options.candidate_switches, experiment.candidate.switches);
    if (options.replicates) experiment.replicates = options.replicates;
    if (options.super_rounds) experiment.super_rounds = options.super_rounds;
    experiment.tokens = options.tokens.value_or(experiment.tokens);
    experiment.position = options.position.value_or(experiment.position);
    experiment.threads = options.threads.value_or(experiment.threads);
    if (options.margin_percent) experiment.margin = *options.margin_percent / 100.0;
    if (!options.policy.empty()) experiment.policy = options.policy;
    return experiment;
}

Policy read_policy(const std::string& name) {
    const std::string path = policy_path(name);
    const auto text = platform::read_small_file(path);
    if (!text) throw Error(ExitCode::usage, "the policy " + path + " cannot be read");
    return parse_policy(*text, path);
}

// 63 bits, so that every reader of the database can hold it.
std::uint64_t drawn_seed() {
    std::random_device device;
    return ((static_cast<std::uint64_t>(device()) << 32) | device()) >> 1;
}

// With the device's lock in hand, whatever is recorded as running here belongs to a runner that is gone.
void abort_abandoned(Store& store, const std::string& work_directory) {
    for (const SessionSummary& session : store.running_sessions()) {
        if (session.host != platform::host_name()) continue;
        store.abort(session.uuid, "the runner ended without sealing the session");
        session::remove_arm_copies(work_directory, session.uuid);
    }
}

}  // namespace

session::RunRequest request_for(const CommonOptions& common, const RunOptions& options) {
    session::RunRequest request;
    request.experiment = experiment_from(options);
    request.policy = read_policy(request.experiment.policy);
    request.base_library = engine_path(request.experiment.base.engine);
    request.candidate_library = engine_path(request.experiment.candidate.engine);
    request.model_path = model_path(request.experiment.model);
    request.work_directory = work_directory(database_path(common.database));
    request.uuid = new_uuid();
    request.seed = options.seed.value_or(drawn_seed());
    if (options.patience_seconds) request.silence_limit = std::chrono::seconds(*options.patience_seconds);
    request.measure_identical = options.measure_identical;
    request.cache = cache_settings();
    if (options.no_weight_cache) request.cache.folder.clear();
    request.cache.verify = options.verify_weights;
    return request;
}

Desk::Desk(const std::string& database) : lock_("cpu"), store_(database) {
    abort_abandoned(store_, work_directory(database));
}

std::vector<LedgerEntry> Desk::earlier(const Session& session, int super_rounds) {
    // Enough to know a standard deviation to a few percent, few enough to follow a machine that changes.
    constexpr int newest = 20;
    const std::string& engine = session.artifacts.front().engine_name;
    std::vector<LedgerEntry> entries =
        store_.ledger({.workload_sha256 = session.workload.sha256, .host = session.host, .device = session.device, .limit = 10 * newest});
    std::erase_if(entries, [&](const LedgerEntry& entry) { return entry.engine != engine || entry.super_rounds != super_rounds; });
    if (entries.size() > newest) entries.resize(newest);
    return entries;
}

void Desk::ask_ledger(session::RunRequest& request) {
    request.control_sd = [this](const Session& session, int super_rounds) { return pooled_control_sd(earlier(session, super_rounds)); };
}

session::PlannedSession Desk::plan(session::RunRequest request, const session::Preparation& preparation) {
    ask_ledger(request);
    return session::plan_session(request, preparation, lock_);
}

Session Desk::run(session::RunRequest request, const session::Preparation& preparation, bool quiet) {
    ask_ledger(request);
    StoreSink sink(store_, request.uuid);
    {
        ProgressLine progress(quiet);
        session::run_session(request, preparation, lock_, sink, [&](const session::SessionProgress& so_far) { progress.update(so_far); });
    }
    return store_.load_session(request.uuid);
}

}  // namespace kestrel::cli
