// One synthetic session, the same every time, for the approved reports.
#pragma once

#include <cmath>
#include <string>

#include "runner/plan/plan.hpp"
#include "runner/record/names.hpp"
#include "runner/stats/estimate.hpp"
#include "runner/stats/verdict.hpp"

namespace kestrel::fixture {

// 64 hexadecimal digits that are told apart at a glance.
inline std::string hash(char digit) {
    return std::string(64, digit);
}

// A small, fixed scatter of -500..+500 ns.
inline std::int64_t scatter(int replicate, int super_round, int round, int arm) {
    const int mixed = (replicate * 7919 + super_round * 104729 + round * 1299709 + arm * 15485863) % 1001;
    return mixed - 500;
}

inline std::vector<Window> windows_of(const Plan& plan) {
    std::vector<Window> windows;
    for (int replicate = 0; replicate < plan.replicates; ++replicate) {
        for (int super_round = 0; super_round < plan.super_rounds; ++super_round) {
            for (int i = 0; i < 18; ++i) {
                Window window;
                window.replicate = replicate;
                window.super_round = super_round;
                window.round = i / 3;
                window.slot = i % 3;
                window.arm =
                    plan.schedules[static_cast<std::size_t>(replicate)][static_cast<std::size_t>(super_round)][static_cast<std::size_t>(i)];
                const int arm = static_cast<int>(window.arm);
                const std::int64_t level = (window.arm == ArmRole::candidate ? 16'410'000 : 18'830'000) + 4000 * replicate;
                for (int token = 0; token < plan.tokens; ++token) {
                    window.token_ns.push_back(level + 50 * scatter(replicate, super_round, window.round + 6 * token, arm));
                    window.window_ns += window.token_ns.back();
                }
                windows.push_back(window);
            }
        }
    }
    return windows;
}

// Readings of a quiet machine that tells no frequencies, after every round.
inline std::vector<Reading> readings_of(const Plan& plan) {
    std::vector<Reading> readings;
    double at = 0.0;
    for (int replicate = 0; replicate < plan.replicates; ++replicate) {
        readings.push_back({replicate, -1, -1, static_cast<std::int64_t>(at * 1e9), {}});
        for (int i = -1; i < 6 * plan.super_rounds; ++i, at += 0.25) {
            Reading& reading = i < 0 ? readings.back() : readings.emplace_back();
            reading.replicate = replicate;
            reading.super_round = i < 0 ? -1 : i / 6;
            reading.round = i < 0 ? -1 : i % 6;
            reading.at_ns = static_cast<std::int64_t>(at * 1e9);
            reading.sources["cpu"] = {{"busy_s", 8.03 * at}, {"steal_s", 0.004 * at}, {"worker_s", 8.0 * at}, {"own_s", 0.01 * at}};
            reading.sources["pressure"] = {{"some_s", 0.003 * at}};
        }
    }
    return readings;
}

inline Workload workload() {
    Workload w;
    w.sha256 = hash('6');
    w.model_name = "hybrid-64.toml";
    w.model_path = "configs/models/hybrid-64.toml";
    w.weights_digest = hash('7');
    w.layout_id = "q4-rows-v1";
    w.launch_mode = "cpu";
    w.layers = 64;
    w.gdn_layers = 48;
    w.attention_layers = 16;
    w.vocab = 512;
    w.threads = 8;
    w.position = 128;
    w.tokens = {5, 17, 400, 3, 88};
    return w;
}

inline Session session() {
    Session s;
    s.uuid = "3f0c9a52-7d1e-4b68-9a47-5b1de0c2a911";
    s.state = SessionState::sealed;
    s.started_at = "2025-03-01T04:05:06Z";
    s.ended_at = "2025-03-01T04:06:51Z";
    s.host = "bench-03";
    s.device = "cpu: Example CPU 32-Core";
    s.runner_version = "0.1.0";
    s.seal_sha256 = hash('9');
    s.place = {PlaceKind::runtime_switch, "VLLM_CUDA_GDN_DELTA", "ref", "reg", {}};
    PlanRequest request;
    request.experiment = "gdn-register";
    request.seed = 20250301;
    request.super_rounds = 2;
    request.tokens = 4;
    request.position = 128;
    request.threads = 8;
    s.plan = make_plan(request);
    s.plan.sha256 = hash('8');
    s.workload = workload();
    s.environment.sha256 = hash('5');
    s.environment.facts = {{"cpu.model", "Example CPU 32-Core"}, {"governor", "performance"}, {"kernel", "6.1.0"}};
    for (const ArmRole role : {ArmRole::base, ArmRole::control, ArmRole::candidate}) {
        Arm& arm = s.arms.at(index_of(role));
        arm.role = role;
        arm.artifact_sha256 = hash('a');
        arm.switches = {{"VLLM_CUDA_GDN_DELTA", role == ArmRole::candidate ? "reg" : "ref"}};
        arm.effective_switches = arm.switches;
        arm.borrowed_memory = true;
    }
    Artifact artifact;
    artifact.sha256 = hash('a');
    artifact.seen_path = "lib/engine.so";
    artifact.stored_path = "artifacts/" + hash('a') + ".so";
    s.artifacts = {artifact};
    for (int i = 0; i < s.plan.replicates; ++i) {
        Replicate replicate;
        replicate.index = i;
        replicate.status = "finished";
        s.replicates.push_back(replicate);
    }
    s.windows = windows_of(s.plan);
    s.readings = readings_of(s.plan);
    Evidence evidence;
    evidence.outputs_equal = true;
    evidence.outputs_vacuous = false;
    evidence.warnings.push_back(
        {"GOVERNOR", "the frequency governor was not fixed; the schedule cancels slow drift, and the interval shows the rest"});
    s.verdict = judge(s.plan, estimate(s.plan, s.windows), evidence);
    return s;
}

// The session as it stood after `windows` windows.
inline Session unfinished(SessionState state, std::size_t windows) {
    Session s = session();
    s.state = state;
    s.ended_at.clear();
    s.seal_sha256.clear();
    s.verdict.reset();
    s.windows.resize(windows);
    s.readings.clear();
    s.replicates.resize(2);
    s.replicates[1].status = state == SessionState::aborted ? "crashed" : "running";
    s.replicates[1].detail = state == SessionState::aborted ? "signal 11 while the candidate decoded" : "";
    if (state == SessionState::aborted) {
        s.ended_at = "2025-03-01T04:05:40Z";
        s.events.push_back(
            {7, "2025-03-01T04:05:40Z", "aborted", "replicate 2 crashed: signal 11; alone, no arm crashed again: unattributed"});
    }
    return s;
}

inline Session later_session() {
    Session s = session();
    s.uuid = "b7712e04-0c55-4f0e-8d0a-91f3c1d2e7aa";
    s.started_at = "2025-03-09T04:05:02Z";
    s.host = "bench-04";
    s.environment.facts["kernel"] = "6.6.0";
    s.environment.facts["numa.nodes"] = "2";
    s.workload.threads = 16;
    s.workload.sha256 = hash('4');
    for (Arm& arm : s.arms) arm.artifact_sha256 = hash('b');
    s.artifacts[0].sha256 = hash('b');
    s.artifacts[0].stored_path = "artifacts/" + hash('b') + ".so";
    return s;
}

inline SessionSummary summary(const std::string& uuid, const std::string& started_at, double d, VerdictKind verdict) {
    SessionSummary s;
    s.uuid = uuid;
    s.state = SessionState::sealed;
    s.started_at = started_at;
    s.experiment = "gdn-register";
    s.model_name = "hybrid-64.toml";
    s.workload_sha256 = hash('6');
    s.environment_sha256 = hash('5');
    s.host = "bench-03";
    s.device = "cpu: Example CPU 32-Core";
    s.base_sha256 = hash('a');
    s.candidate_sha256 = hash('c');
    s.finished_replicates = 6;
    s.windows = 216;
    s.verdict = verdict;
    s.candidate = Interval{d, d - 0.002, d + 0.002, 0.95, 0.0019, 6};
    s.margin = 0.01;
    return s;
}

inline std::vector<SessionSummary> summaries() {
    std::vector<SessionSummary> all{
        summary("33333333-0000-4000-8000-000000000000", "2025-03-03T04:00:00Z", 0.1180, VerdictKind::faster),
        summary("11111111-0000-4000-8000-000000000000", "2025-03-01T04:00:00Z", 0.1375, VerdictKind::faster),
        summary("22222222-0000-4000-8000-000000000000", "2025-03-02T04:00:00Z", 0.1381, VerdictKind::faster),
        summary("44444444-0000-4000-8000-000000000000", "2025-03-03T05:00:00Z", 0.0004, VerdictKind::same),
        summary("55555555-0000-4000-8000-000000000000", "2025-03-03T06:00:00Z", 0.0, VerdictKind::undecided),
    };
    all[0].base_sha256 = hash('d');
    all[0].environment_sha256 = hash('e');
    all[3].host = "a-host-with-a-very-long-name";
    all[3].experiment = "an-experiment-with-a-very-long-name";
    all[4].state = SessionState::aborted;
    all[4].verdict.reset();
    all[4].candidate.reset();
    return all;
}

}  // namespace kestrel::fixture
