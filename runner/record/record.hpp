// The plain values that runner, store and reports share. No behaviour, no I/O: whoever needs to understand what a session
// holds reads this file.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kestrel {

enum class ArmRole { base, control, candidate };
inline constexpr int arm_count = 3;

enum class VerdictKind { invalid, same, faster, slower, undecided };
enum class SessionState { running, sealed, aborted };
enum class PlaceKind { define, flag, source_file, runtime_switch, commit_step, none };

struct SwitchSetting {
    std::string name;
    std::string value;
    bool operator==(const SwitchSetting&) const = default;
};

// The single difference between base and candidate. `kind == none`: no difference at all.
struct Place {
    PlaceKind kind = PlaceKind::none;
    std::string name;  // define, flag, file or switch
    std::string base;  // value or hash on the base side; "(unset)" where absent
    std::string candidate;
    std::vector<std::string> changed_objects;  // host objects whose bytes differ
};

// The bytes of one engine library. Identity is the SHA-256; the rest was recorded when it was registered.
struct Artifact {
    std::string sha256;
    std::int64_t bytes = 0;
    std::string engine_name;  // from the manifest, e.g. "kestrel_cpu"
    std::string seen_path;    // where the user named it
    std::string stored_path;  // content-addressed copy
    std::string manifest_sha256;
    std::string manifest_json;
    std::string commit;  // "" if not in a git checkout
    bool dirty = false;
};

struct Arm {
    ArmRole role = ArmRole::base;
    std::string artifact_sha256;
    std::vector<SwitchSetting> switches;            // as requested
    std::vector<SwitchSetting> effective_switches;  // as the engine reported them once open; empty before
    bool borrowed_memory = false;                   // measured in memory lent by the runner
};

// What machine and software this ran on. Keys are stable names ("cpu.model", "kernel", "governor", ...).
struct Environment {
    std::string sha256;
    std::map<std::string, std::string> facts;
};

// What was decoded. Sessions are in one series only if it is equal.
struct Workload {
    std::string sha256;
    std::string model_name;  // file or directory name
    std::string model_path;
    std::string weights_digest;  // canonical, from the engine
    std::string layout_id;
    std::string launch_mode;  // "cpu", "stream", "graph"
    int layers = 0;
    int gdn_layers = 0;
    int attention_layers = 0;
    int vocab = 0;
    int threads = 0;
    int position = 0;                  // tokens decoded before the untimed one
    std::vector<std::int32_t> tokens;  // teacher-forced: `position` tokens of context, one untimed, the rest timed
};

// A point at which a session may end: after so many replicates the candidate's interval is taken at this confidence.
struct Look {
    int replicates = 0;
    double confidence = 0.95;  // nominal: over all looks together the plan's confidence holds
    bool operator==(const Look&) const = default;
};

// Everything decided before the first round. Stored with its hash.
struct Plan {
    std::string sha256;      // of the canonical JSON of the other fields
    std::string experiment;  // "gdn-register", or "ad-hoc"
    int experiment_version = 1;
    std::uint64_t seed = 0;
    int replicates = 6;    // K, or the most there may be if there are looks before it
    int super_rounds = 4;  // per replicate
    int tokens = 16;       // timed tokens per window
    int position = 0;
    int threads = 0;
    double margin = 0.01;      // smallest relative difference that matters; delta = ln(1 + margin)
    double confidence = 0.95;  // of the candidate's interval
    double control_confidence = 0.99;
    std::string output_rule = "bit-identical";
    std::vector<std::array<ArmRole, 3>> load_orders;              // one per replicate
    std::vector<std::vector<std::array<ArmRole, 18>>> schedules;  // [replicate][super-round]: 6 rounds x 3 windows
    std::vector<std::int64_t> paddings;                           // scratch padding per replicate, bytes
    std::string policy;                                           // name of the policy it follows; "" for none
    std::vector<Look> looks;                                      // ascending, the last at `replicates`; empty: that one look only
    double control_sd = 0.0;  // between replicates, of earlier sessions' controls: what `replicates` was chosen for; 0 if not known
};

// One arm's timed window in one round.
struct Window {
    int replicate = 0;
    int super_round = 0;
    int round = 0;  // 0..5 in the super-round
    int slot = 0;   // 0..2 in the round
    ArmRole arm = ArmRole::base;
    std::int64_t started_ns = 0;  // steady clock, relative to the replicate's start
    std::int64_t window_ns = 0;   // first timed token in to last token out
    std::vector<std::int64_t> token_ns;
    std::string output_digest;  // SHA-256 over the greedy tokens and the last logits
    [[nodiscard]] double ms_per_token() const {
        return token_ns.empty() ? 0.0 : static_cast<double>(window_ns) / 1e6 / static_cast<double>(token_ns.size());
    }
};

struct Replicate {
    int index = 0;
    std::int64_t worker_pid = 0;
    std::array<ArmRole, 3> load_order{};
    std::string status;                         // "running", "finished", "crashed", "hung", "failed"
    std::string detail;                         // signal, exit code, last message
    std::array<std::string, 3> state_digest{};  // by ArmRole: SHA-256 of the full state after the last window
    int distinct_tokens = 0;                    // greedy tokens seen: outputs must not be vacuous
};

struct Event {
    int sequence = 0;
    std::string at;    // UTC, RFC 3339
    std::string kind;  // "opened", "registered", "crash", "environment", "rehash", "sealed", "aborted", ...
    std::string detail;
};

// d = ln(base / candidate) over replicates, with a two-sided interval.
struct Interval {
    double d = 0.0;
    double lo = 0.0;
    double hi = 0.0;
    double confidence = 0.95;
    double sd = 0.0;  // between replicates
    int replicates = 0;
    bool operator==(const Interval&) const = default;
};

struct ArmSummary {
    ArmRole arm = ArmRole::base;
    int windows = 0;
    double mean_ms = 0.0;  // of the windows' ms/token
    double median_ms = 0.0;
    double min_ms = 0.0;
    double max_ms = 0.0;
    double spread_percent = 0.0;  // (max - min) / min
    double p99_token_ms = 0.0;
    double tokens_per_second = 0.0;
};

struct Estimate {
    Interval candidate;               // base against candidate
    Interval control;                 // base against its byte copy
    std::vector<double> replicate_d;  // per replicate, ln(base / candidate)
    std::vector<double> replicate_control_d;
    std::array<ArmSummary, 3> arms{};  // by ArmRole
    double mean_ratio = 1.0;           // ratio of mean times
    double p99_ratio = 1.0;
    // The logarithms of those ratios taken in each replicate, and by how much they differ from the replicate's robust one.
    Interval mean_based;
    Interval p99_based;
    Interval mean_minus_robust;
    Interval p99_minus_robust;
    double saved_ms_per_token = 0.0;  // mean base - mean candidate
};

struct Verdict {
    VerdictKind kind = VerdictKind::undecided;
    std::vector<std::string> reasons;  // "CODE: sentence"
    double margin = 0.0;
    double delta = 0.0;
    Estimate estimate;
};

struct Session {
    std::string uuid;
    SessionState state = SessionState::running;
    std::string started_at;  // UTC, RFC 3339
    std::string ended_at;
    std::string host;
    std::string device;  // "cpu: AMD EPYC ..." or a GPU name and UUID
    std::string runner_version;
    std::string seal_sha256;  // over all rows, set when sealed
    Place place;
    Plan plan;
    Workload workload;
    Environment environment;
    std::array<Arm, 3> arms{};  // by ArmRole
    std::vector<Artifact> artifacts;
    std::vector<Replicate> replicates;
    std::vector<Window> windows;
    std::vector<Event> events;
    std::optional<Verdict> verdict;
};

// What a sealed session adds to the service's own record: how base came out against its byte copy, and, where the difference between the
// arms was planted and so is known, what was found of it.
struct LedgerEntry {
    std::string uuid;
    std::string started_at;
    double seconds = 0.0;  // from opening to seal
    std::string host;
    std::string device;
    std::string engine;  // of base
    std::string launch_mode;
    std::string model_name;
    std::string workload_sha256;
    std::string experiment;
    int super_rounds = 0;
    bool same_code = false;  // the arms differ in nothing
    VerdictKind verdict = VerdictKind::undecided;
    double margin = 0.0;
    Interval candidate;
    Interval control;
    std::optional<double> planted_d;  // the true ln(base / candidate), from outside the session
};

// count of `of`, with the exact two-sided binomial interval at 95 % of the rate behind it; 0 of 0 lies in [0, 1].
struct Proportion {
    int count = 0;
    int of = 0;
    double lo = 0.0;
    double hi = 1.0;
    bool operator==(const Proportion&) const = default;
};

// One host, device, engine and launch mode.
struct LedgerRow {
    std::string host;
    std::string device;
    std::string engine;
    std::string launch_mode;
    int sessions = 0;
    // Controls (base against its byte copy) whose 95 % interval excludes 0. About one in twenty should: 1 - 0.95.
    Proportion control_exclusions;
    double control_sd = 0.0;  // pooled, between replicates
    // Sessions whose arms are known to be equally fast: called FASTER or SLOWER, and called SAME.
    Proportion false_alarms;
    Proportion same;
    // Sessions with a planted difference: called by its right name, and with it in the candidate's interval.
    Proportion found;
    Proportion covered;
};

// One line of `list` and `history`.
struct SessionSummary {
    std::string uuid;
    SessionState state = SessionState::running;
    std::string started_at;
    std::string experiment;
    int experiment_version = 1;
    std::string model_name;
    std::string workload_sha256;
    std::string environment_sha256;
    std::string host;
    std::string device;
    std::string base_sha256;
    std::string candidate_sha256;
    int finished_replicates = 0;
    std::int64_t windows = 0;
    std::optional<VerdictKind> verdict;
    std::optional<Interval> candidate;
    double margin = 0.0;
};

}  // namespace kestrel
