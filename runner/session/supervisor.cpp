#include "runner/session/supervisor.hpp"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>

#include "runner/identity/artifact_store.hpp"
#include "runner/identity/difference.hpp"
#include "runner/identity/manifest.hpp"
#include "runner/identity/sha256.hpp"
#include "runner/plan/choose.hpp"
#include "runner/plan/plan.hpp"
#include "runner/platform/host.hpp"
#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"
#include "runner/session/arm_copies.hpp"
#include "runner/session/context.hpp"
#include "runner/session/job.hpp"
#include "runner/session/outputs.hpp"
#include "runner/session/worker_client.hpp"
#include "runner/stats/assess.hpp"
#include "runner/stats/looks.hpp"
#include "runner/stats/telemetry_guards.hpp"
#include "runner/telemetry/telemetry.hpp"

namespace kestrel::session {
namespace {

// Longer than any single step of a healthy worker (loading a 27B model, decoding one window), short enough to notice a hang the same
// day. A 27B model in f32 on a slow host reads 108 GB for a token: ten seconds cover it.
constexpr std::chrono::seconds silence_of_a_step{300};
constexpr std::chrono::seconds silence_per_token{10};

// Before the session starts this process waits, so whatever is busy is somebody else. A tenth of a core is more than an idle system needs.
constexpr int busy_interval_ms = 500;
constexpr double busy_limit = 0.1;

const std::vector<SwitchSetting>& switches_of(const Experiment& experiment, ArmRole role) {
    return role == ArmRole::candidate ? experiment.candidate.switches : experiment.base.switches;
}

constexpr std::array every_arm{ArmRole::base, ArmRole::control, ArmRole::candidate};
// Control is a byte copy of base: whatever base does without being timed, control would do again.
constexpr std::array every_build{ArmRole::base, ArmRole::candidate};

Job job_for(const RunRequest& request, const ArmCopies& copies, JobKind kind, std::span<const ArmRole> order) {
    Job job;
    job.kind = kind;
    job.model = request.model_path;
    job.threads = request.experiment.threads;
    job.position = request.experiment.position;
    job.cache = request.cache;
    for (const ArmRole role : order) {
        job.arms.push_back({role, copies.path(role), switches_of(request.experiment, role), copies.artifact(role)});
    }
    return job;
}

std::string canonical_sha256(const nlohmann::json& j) {
    return sha256_hex(dump_json(j));
}

Environment environment_now() {
    Environment now;
    now.facts = platform::environment_facts();
    now.sha256 = canonical_sha256(nlohmann::json(now.facts));
    return now;
}

// How an engine starts a token's kernels, where it has the choice: part of the calibre (README, "Vocabulary").
constexpr std::string_view launch_switch = "KESTREL_LAUNCH";

class SessionRun {
  public:
    SessionRun(const RunRequest& request, const Preparation& preparation, const platform::DeviceLock& lock, SessionSink* sink,
               const ProgressFunction& progress)
        : request_(&request),
          lock_(&lock),
          sink_(sink),
          progress_(progress),
          copies_(request.work_directory, request.uuid, preparation.base, preparation.candidate) {
        session_.uuid = request.uuid;
        session_.place = preparation.place;
        session_.artifacts.push_back(preparation.base);
        if (preparation.candidate.sha256 != preparation.base.sha256) session_.artifacts.push_back(preparation.candidate);
        for (const ArmRole role : every_arm) {
            Arm& arm = session_.arms.at(index_of(role));
            arm.role = role;
            arm.artifact_sha256 = role == ArmRole::candidate ? preparation.candidate.sha256 : preparation.base.sha256;
            arm.switches = switches_of(request.experiment, role);
        }
    }

    // What run() would do, as far as it is decided before the first round.
    PlannedSession planned() {
        prepare_session();
        return {session_, cost_};
    }

    void run() {
        prepare_session();
        telemetry_.emplace(telemetry::TelemetrySettings{.device = session_.device});
        sink_->begin(session_);
        try {
            for (const auto& [kind, detail] : notes_) sink_->event(kind, detail);
            for (const Finding& warning : known_.warnings) sink_->event("warning", warning.code + ": " + warning.sentence);
            for (const auto& [kind, detail] : request_->notes) sink_->event(kind, detail);
            if (session_.plan.position > 0) decode_context();
            for (int done = 1; !verdict_; ++done) {
                run_replicate(done - 1);
                if (is_look(session_.plan, done)) look();
            }
            if (const std::string problem = telemetry_->gpu_problem(); !problem.empty()) sink_->event("telemetry", "GPU: " + problem);
            sink_->seal(*verdict_);
        } catch (const Error& error) {
            sink_->abort(error.what());
            throw;
        } catch (const std::exception& error) {
            sink_->abort(error.what());
            throw Error(ExitCode::invalid, error.what());
        }
    }

  private:
    [[nodiscard]] std::chrono::seconds silence_limit() const {
        return request_->silence_limit.value_or(silence_of_a_step + request_->experiment.tokens * silence_per_token);
    }

    void note_load() {
        const auto busy = platform::busy_cores(busy_interval_ms);
        if (busy && *busy > busy_limit) {
            const long percent = std::lround(*busy * 100.0);
            known_.warnings.push_back({"LOAD", "other programs kept " + std::to_string(percent) + " % of a core busy on this machine of " +
                                                   std::to_string(platform::usable_cpus()) +
                                                   " when the session began; stop them, or expect wider intervals"});
        }
    }

    // Everything before the first round.
    void prepare_session() {
        session_.environment = environment_now();
        session_.host = platform::host_name();
        session_.device = platform::cpu_device_name();
        session_.runner_version = KESTREL_VERSION;
        note_load();
        inspect();
        make_the_plan();
    }

    // What the engines make of the model and of their switches, before anything is timed or stored.
    void inspect() {
        const Job job = job_for(*request_, copies_, JobKind::inspect, every_arm);
        const auto started = std::chrono::steady_clock::now();
        const WorkerEnd end = run_worker(job, lock_->fd(), silence_limit(), {}, [&](const nlohmann::json& message) {
            take_inspection(message);
            return false;
        });
        if (end.kind != WorkerEnd::Kind::finished) {
            const auto code = end.kind == WorkerEnd::Kind::failed ? static_cast<ExitCode>(end.error_code) : ExitCode::invalid;
            throw Error(code, "the engines cannot be measured: " + end.detail);
        }
        cost_.fixed_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
        check_effective_switches();
    }

    void take_inspection(const nlohmann::json& message) {
        if (message.at("type") == "note") notes_.emplace_back(message.at("kind").get<std::string>(), message.at("text").get<std::string>());
        if (message.at("type") != "inspected") return;
        const nlohmann::json& info = message.at("info");
        Workload& workload = session_.workload;
        workload.model_name = std::filesystem::path(request_->model_path).stem().string();
        if (std::filesystem::is_directory(request_->model_path)) {
            workload.model_name = std::filesystem::path(request_->model_path).lexically_normal().filename().string();
        }
        workload.model_path = request_->model_path;
        workload.weights_digest = message.at("weights_digest").get<std::string>();
        workload.layout_id = message.at("layout_id").get<std::string>();
        weights_block_ = message.at("weights_block").get<std::string>();
        cost_.ms_per_token = message.at("ms_per_token").get<double>();
        const std::string device = message.at("device").get<std::string>();
        if (!device.empty()) session_.device = device;
        workload.launch_mode = device.empty() ? "cpu" : "stream";
        workload.layers = info.at("layers").get<int>();
        workload.gdn_layers = info.at("gdn_layers").get<int>();
        workload.attention_layers = info.at("attention_layers").get<int>();
        workload.vocab = info.at("vocab").get<int>();
        workload.threads = info.at("threads").get<int>();
        for (const nlohmann::json& described : message.at("arms")) {
            Arm& arm = session_.arms.at(index_of(described.at("role").get<ArmRole>()));
            arm.effective_switches = described.at("effective").get<std::vector<SwitchSetting>>();
            arm.borrowed_memory = message.at("borrowed").get<bool>();
            for (const SwitchSetting& one : arm.effective_switches) {
                if (arm.role == ArmRole::base && one.name == launch_switch) workload.launch_mode = one.value;
            }
            for (const nlohmann::json& known : described.at("known")) note_stray_switch(known.at("name").get<std::string>());
        }
    }

    // Arms get switches from the experiment alone. A setting that a person left in the environment is without effect here, but it
    // would not be in production: say so.
    void note_stray_switch(const std::string& name) {
        const char* value = std::getenv(name.c_str());
        if (value == nullptr || !stray_.emplace(name, value).second) return;
        known_.warnings.push_back({"ENVIRONMENT", name + "=" + value +
                                                      " is set in the environment; it is ignored here, but an engine opened without a "
                                                      "switch list would obey it: unset it"});
    }

    void check_effective_switches() const {
        const Arm& base = session_.arms[0];
        const Arm& control = session_.arms[1];
        const Arm& candidate = session_.arms[2];
        if (base.effective_switches != control.effective_switches) {
            throw Error(ExitCode::not_comparable,
                        "base and its byte copy report different effective switches; the engine is not deterministic");
        }
        if (session_.place.kind == PlaceKind::runtime_switch && base.effective_switches == candidate.effective_switches) {
            throw Error(ExitCode::not_comparable,
                        "both arms run with the same effective settings although " + session_.place.name +
                            " was set differently: to this engine the values are one setting, or it does not report its switches; choose "
                            "values that differ");
        }
    }

    void make_the_plan() {
        const Experiment& experiment = request_->experiment;
        const Policy& policy = request_->policy;
        PlanRequest wanted;
        wanted.experiment = experiment.name;
        wanted.experiment_version = experiment.version;
        wanted.seed = request_->seed;
        wanted.super_rounds = experiment.super_rounds.value_or(policy.super_rounds);
        wanted.tokens = experiment.tokens;
        wanted.position = experiment.position;
        wanted.threads = session_.workload.threads;
        wanted.margin = experiment.margin.value_or(policy.margin);
        wanted.confidence = 1.0 - policy.alpha;
        wanted.control_confidence = policy.control_confidence;
        wanted.output_rule = policy.output_rule;
        wanted.policy = policy.name;
        describe_workload();
        const std::optional<double> control_sd = request_->control_sd ? request_->control_sd(session_, wanted.super_rounds) : std::nullopt;
        wanted.control_sd = control_sd.value_or(0.0);
        wanted.replicates = experiment.replicates.value_or(choose_length(policy, wanted.margin, control_sd).replicates);
        session_.plan = make_plan(wanted);
        session_.plan.sha256 = sha256_hex(canonical_json(session_.plan));
    }

    void describe_workload() {
        const Experiment& experiment = request_->experiment;
        Workload& workload = session_.workload;
        workload.position = experiment.position;
        // The same tokens in every session of an experiment: only the order of the rounds is drawn anew.
        workload.tokens = teacher_tokens(token_seed, experiment.position + 1 + experiment.tokens, workload.vocab);
        nlohmann::json identity(workload);
        identity.erase("sha256");
        identity.erase("model_path");  // the same model elsewhere is the same workload
        identity.erase("model_name");
        workload.sha256 = canonical_sha256(identity);
    }

    // What the planned jobs have in common.
    [[nodiscard]] Job planned_job(JobKind kind, std::span<const ArmRole> order) const {
        Job job = job_for(*request_, copies_, kind, order);
        job.tokens = session_.workload.tokens;
        job.weights_digest = session_.workload.weights_digest;
        job.weights_block = weights_block_;
        return job;
    }

    // Once for all replicates: thousands of tokens would take longer than the windows themselves.
    void decode_context() {
        Job job = planned_job(JobKind::context, every_build);
        for (JobArm& arm : job.arms) arm.context.path = copies_.context_path(arm.role);
        const WorkerEnd end = run_worker(job, lock_->fd(), silence_limit(), {}, [&](const nlohmann::json& message) {
            if (message.at("type") == "note") note(message);
            if (message.at("type") == "saved") contexts_ = context_states(message);
            return false;
        });
        if (end.kind != WorkerEnd::Kind::finished) explain_failure(job, end);
        sink_->event("context", context_text(session_.plan.position, contexts_));
    }

    void note(const nlohmann::json& message) { sink_->event(message.at("kind").get<std::string>(), message.at("text").get<std::string>()); }

    void run_replicate(int index) {
        Replicate replicate;
        replicate.index = index;
        replicate.load_order = session_.plan.load_orders.at(static_cast<std::size_t>(index));
        replicate.status = "running";
        Job job = planned_job(JobKind::replicate, replicate.load_order);
        job.replicate = index;
        job.padding = session_.plan.paddings.at(static_cast<std::size_t>(index));
        job.schedule = session_.plan.schedules.at(static_cast<std::size_t>(index));
        for (JobArm& arm : job.arms) {
            const ContextState& state = contexts_.at(index_of(arm.role));
            arm.context = {state.path, state.sha256};
        }
        const auto started = std::chrono::steady_clock::now();
        const WorkerEnd end = run_worker(
            job, lock_->fd(), silence_limit(),
            [&](std::int64_t pid) {
                replicate.worker_pid = pid;
                sink_->begin_replicate(replicate);
            },
            [&](const nlohmann::json& message) { return take_message(message, replicate); });
        replicate.status = end.kind == WorkerEnd::Kind::interrupted ? "failed" : name_of(end.kind);
        replicate.detail = end.detail;
        sink_->finish_replicate(replicate);
        session_.replicates.push_back(replicate);
        seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
        if (end.kind != WorkerEnd::Kind::finished) explain_failure(job, end);
    }

    // True if the worker waits for permission to go on.
    bool take_message(const nlohmann::json& message, Replicate& replicate) {
        const std::string type = message.at("type").get<std::string>();
        if (type == "round") {
            const auto windows = message.at("windows").get<std::vector<Window>>();
            note_reading(replicate, {replicate.index, windows.at(0).super_round, windows.at(0).round});
            sink_->round(windows, new_readings_);
            new_readings_.clear();
            session_.windows.insert(session_.windows.end(), windows.begin(), windows.end());
            if (progress_) progress_({session_.plan, session_.windows, last_look_ ? &*last_look_ : nullptr});
            return true;
        }
        if (type == "note") note(message);
        if (type == "ready") {
            check_ready(message, replicate);
            new_readings_.clear();
            note_reading(replicate, {replicate.index});
        }
        if (type == "done") {
            replicate.state_digest = message.at("state_digest").get<std::array<std::string, 3>>();
            replicate.distinct_tokens = message.at("distinct_tokens").get<int>();
        }
        return false;
    }

    // The worker waits meanwhile, so no arm is being timed.
    void note_reading(const Replicate& replicate, const telemetry::ReadingPlace& place) {
        new_readings_.push_back(telemetry_.value().read(replicate.worker_pid, place));
        session_.readings.push_back(new_readings_.back());
    }

    // What was inspected must be what is measured: the engine's settings and memory in this process against those in the first one.
    void check_ready(const nlohmann::json& message, const Replicate& replicate) {
        for (const Arm& arm : session_.arms) {
            const std::string role(name_of(arm.role));
            const auto effective = message.at("effective").at(role).get<std::vector<SwitchSetting>>();
            if (effective == arm.effective_switches && message.at("borrowed").get<bool>() == arm.borrowed_memory) continue;
            known_.failed_guards.push_back(
                {"EFFECTIVE", "in replicate " + std::to_string(replicate.index) + " the " + role +
                                  " arm ran with other effective switches or other memory than when it was inspected; its settings "
                                  "must follow from the switch list alone"});
        }
    }

    // Replays each arm alone; only an arm that fails by itself is blamed.
    [[noreturn]] void explain_failure(const Job& failed, const WorkerEnd& end) {
        if (end.kind == WorkerEnd::Kind::interrupted) throw Error(ExitCode::invalid, "stopped by the user; finished rounds are kept");
        const bool in_context = failed.kind == JobKind::context;
        const std::string what = (in_context ? "the context's worker" : "replicate " + std::to_string(failed.replicate)) + " " +
                                 name_of(end.kind) + ": " + end.detail;
        sink_->event(name_of(end.kind), what);
        std::string blamed;
        if (end.kind == WorkerEnd::Kind::crashed || end.kind == WorkerEnd::Kind::hung) {
            for (const JobArm& arm : failed.arms) {
                Job alone = failed;
                alone.arms = {arm};
                alone.schedule.assign(1, {});
                alone.schedule[0].fill(arm.role);
                const WorkerEnd replay = run_worker(alone, lock_->fd(), silence_limit(), {},
                                                    [](const nlohmann::json& message) { return message.at("type") == "round"; });
                if (replay.kind == WorkerEnd::Kind::interrupted) throw Error(ExitCode::invalid, what + "; stopped by the user");
                const std::string role(name_of(arm.role));
                sink_->event("replay", role + " alone: " + name_of(replay.kind) + (replay.detail.empty() ? "" : ", " + replay.detail));
                if (replay.kind != WorkerEnd::Kind::finished) blamed += (blamed.empty() ? "" : " and ") + role;
            }
            blamed = blamed.empty() ? "; unattributed: each arm alone finished" : "; reproduced by running " + blamed + " alone";
        }
        // What keeps a context from being saved, a full disk or an engine without that capability, is not the session's result.
        const bool own_reason = in_context && end.kind == WorkerEnd::Kind::failed;
        throw Error(own_reason ? static_cast<ExitCode>(end.error_code) : ExitCode::invalid, what + blamed);
    }

    // At a planned look: everything known so far, and whether that ends the session.
    void look() {
        Evidence evidence = known_;
        for (const Finding& finding : copies_.changed()) evidence.failed_guards.push_back(finding);
        check_environment(evidence);
        compare_outputs(session_, evidence);
        compare_contexts(session_.plan, contexts_, evidence);
        add_telemetry(evidence, session_.plan, session_.windows, session_.readings, is_gpu(session_.device));
        evidence.seconds_per_replicate = seconds_ / static_cast<double>(session_.replicates.size());
        Assessment assessment = assess(session_.plan, session_.windows, evidence);
        std::string text = std::to_string(session_.replicates.size()) + " replicates: " + std::string(name_of(assessment.verdict.kind));
        for (const std::string& reason : assessment.verdict.reasons) text += "; " + reason;
        sink_->event("look", text);
        if (assessment.may_stop) verdict_ = assessment.verdict;
        last_look_ = std::move(assessment.verdict);
    }

    void check_environment(Evidence& evidence) const {
        const Environment now = environment_now();
        if (now.sha256 == session_.environment.sha256) return;
        for (const auto& [name, value] : now.facts) {
            const auto found = session_.environment.facts.find(name);
            const std::string before = found == session_.environment.facts.end() ? "" : found->second;
            if (before == value) continue;
            evidence.failed_guards.push_back(
                {"ENVIRONMENT", name + " changed during the session from '" + before + "' to '" + value + "'", "run again"});
        }
    }

    static constexpr std::uint64_t token_seed = 20260101;  // any fixed number; part of the workload through the tokens

    const RunRequest* request_;
    const platform::DeviceLock* lock_;
    SessionSink* sink_;
    ProgressFunction progress_;
    ArmCopies copies_;
    Session session_;
    Evidence known_;  // beside times, outputs and telemetry
    std::optional<telemetry::Telemetry> telemetry_;
    std::vector<Reading> new_readings_;  // not stored yet
    ReplicateCost cost_;
    std::optional<Verdict> last_look_;
    std::optional<Verdict> verdict_;
    std::map<std::string, std::string> stray_;
    std::vector<std::pair<std::string, std::string>> notes_;  // events of the inspection, when there is no session yet
    std::string weights_block_;                               // hash of the kept block, empty: none
    ContextStates contexts_;                                  // empty at position 0
    double seconds_ = 0.0;
};

}  // namespace

Preparation prepare(const RunRequest& request) {
    const std::string store = request.work_directory + "/artifacts";
    Preparation out;
    out.base = register_artifact(request.base_library, store);
    out.candidate = register_artifact(request.candidate_library, store);
    const Difference difference = compare(parse_manifest(out.base.manifest_json), request.experiment.base.switches,
                                          parse_manifest(out.candidate.manifest_json), request.experiment.candidate.switches);
    out.place = the_one_place(difference);
    require_explained(difference, out.base.sha256, out.candidate.sha256);
    out.same_code = out.place.kind == PlaceKind::none || (out.place.kind != PlaceKind::runtime_switch && no_effect(difference));
    if (request.measure_identical && out.place.kind != PlaceKind::none) {
        throw Error(ExitCode::not_comparable, "an A/A session measures a build against itself, but these arms differ in " + out.place.name);
    }
    return out;
}

PlannedSession plan_session(const RunRequest& request, const Preparation& preparation, const platform::DeviceLock& lock) {
    return SessionRun(request, preparation, lock, nullptr, {}).planned();
}

void run_session(const RunRequest& request, const Preparation& preparation, const platform::DeviceLock& lock, SessionSink& sink,
                 const ProgressFunction& progress) {
    SessionRun(request, preparation, lock, &sink, progress).run();
}

}  // namespace kestrel::session
