#include <spdlog/spdlog.h>

#include <random>

#include "reports/diff.hpp"
#include "runner/main/cache_settings.hpp"
#include "runner/main/commands.hpp"
#include "runner/main/paths.hpp"
#include "runner/main/print.hpp"
#include "runner/main/progress.hpp"
#include "runner/platform/host.hpp"
#include "runner/platform/process.hpp"
#include "runner/session/arm_copies.hpp"
#include "runner/session/supervisor.hpp"
#include "runner/stats/verdict.hpp"
#include "store/repository.hpp"
#include "store/stamp.hpp"

namespace kestrel::cli {
namespace {

// The session's steps, straight into the database.
class StoreSink : public session::SessionSink {
  public:
    StoreSink(Store& store, std::string uuid) : store_(&store), uuid_(std::move(uuid)) {}
    void begin(const Session& session) override { store_->begin_session(session); }
    void begin_replicate(const Replicate& replicate) override { store_->begin_replicate(uuid_, replicate); }
    void round(const std::vector<Window>& windows) override { store_->add_round(uuid_, windows); }
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

// The experiment's file, or an ad-hoc one, with what the command line overrides.
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
    experiment.replicates = options.replicates.value_or(experiment.replicates);
    experiment.super_rounds = options.super_rounds.value_or(experiment.super_rounds);
    experiment.tokens = options.tokens.value_or(experiment.tokens);
    experiment.position = options.position.value_or(experiment.position);
    experiment.threads = options.threads.value_or(experiment.threads);
    if (options.margin_percent) experiment.margin = *options.margin_percent / 100.0;
    return experiment;
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

ExitCode command_run(const CommonOptions& common, const RunOptions& options) {
    session::RunRequest request;
    request.experiment = experiment_from(options);
    request.base_library = engine_path(request.experiment.base.engine);
    request.candidate_library = engine_path(request.experiment.candidate.engine);
    request.model_path = model_path(request.experiment.model);
    const std::string database = database_path(common.database);
    request.work_directory = work_directory(database);
    request.uuid = new_uuid();
    request.seed = options.seed.value_or(drawn_seed());
    if (options.patience_seconds) request.silence_limit = std::chrono::seconds(*options.patience_seconds);
    request.measure_identical = options.measure_identical;
    request.cache = cache_settings();
    if (options.no_weight_cache) request.cache.folder.clear();
    request.cache.verify = options.verify_weights;

    platform::catch_termination();
    const platform::DeviceLock lock("cpu");
    Store store(database);
    abort_abandoned(store, request.work_directory);
    const session::Preparation preparation = session::prepare(request);
    if (preparation.same_code && !request.measure_identical) {
        const DiffSide base{request.base_library, preparation.base.sha256};
        const DiffSide candidate{request.candidate_library, preparation.candidate.sha256};
        const std::vector<Place> places{preparation.place};
        print(
            common, [&] { return diff_text(base, candidate, places); }, [&] { return diff_json(base, candidate, places); });
        return ExitCode::pass;
    }
    StoreSink sink(store, request.uuid);
    {
        ProgressLine progress(common.json);
        session::run_session(request, preparation, lock, sink,
                             [&](const Plan& plan, const std::vector<Window>& windows) { progress.update(plan, windows); });
    }
    const Session session = store.load_session(request.uuid);
    print_session(common, session, database, options.all_rounds);
    return exit_code_of(session.verdict.value().kind);
}

}  // namespace kestrel::cli
