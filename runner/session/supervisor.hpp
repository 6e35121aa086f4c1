// The supervisor's side of a session: it owns the device lock, talks to workers, and hands every durable step to a sink. It loads no
// engine and knows no database.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runner/plan/choose.hpp"
#include "runner/platform/lock.hpp"
#include "runner/record/record.hpp"
#include "runner/session/experiment.hpp"
#include "runner/session/weight_cache.hpp"

namespace kestrel::session {

struct RunRequest {
    Experiment experiment;     // sizes and switches
    Policy policy;             // what the experiment leaves open
    std::string base_library;  // paths
    std::string candidate_library;
    std::string model_path;
    std::string work_directory;  // holds the content-addressed artifacts and the arms' copies
    std::string uuid;            // of the session
    std::uint64_t seed = 0;
    std::optional<std::chrono::seconds> silence_limit;  // after which a worker counts as hung; by default it follows from the plan
    bool measure_identical = false;                     // an A/A session: nothing may differ
    CacheSettings cache;                                // of weights blocks
    // The standard deviation between replicates of earlier controls: of sessions with this one's workload, host, device and engine, which
    // are filled in, and so many super-rounds. Asked once, before the plan is made; may be empty.
    std::function<std::optional<double>(const Session& session, int super_rounds)> control_sd;
    std::vector<std::pair<std::string, std::string>> notes;  // events to record at the beginning: kind, detail
};

// The registered artifacts and the one place in which they differ.
struct Preparation {
    Artifact base;
    Artifact candidate;
    Place place;
    bool same_code = false;  // nothing differs, or what differs changed no object: there is nothing to measure
};

// Copies both libraries under their hash and compares their manifests and switches. Throws Error(not_comparable) listing every place if
// there is more than one.
[[nodiscard]] Preparation prepare(const RunRequest& request);

// Where a session's steps become durable: each call returns only when its data is on disk.
class SessionSink {
  public:
    SessionSink() = default;
    SessionSink(const SessionSink&) = delete;
    SessionSink& operator=(const SessionSink&) = delete;
    virtual ~SessionSink() = default;
    virtual void begin(const Session& session) = 0;
    virtual void begin_replicate(const Replicate& replicate) = 0;
    // The three windows of one round, and the readings taken since the round before.
    virtual void round(const std::vector<Window>& windows, const std::vector<Reading>& readings) = 0;
    virtual void finish_replicate(const Replicate& replicate) = 0;
    virtual void event(const std::string& kind, const std::string& detail) = 0;
    virtual void seal(const Verdict& verdict) = 0;
    virtual void abort(const std::string& reason) = 0;
};

struct SessionProgress {
    const Plan& plan;
    const std::vector<Window>& windows;  // all so far
    const Verdict* last_look;            // null before the first
};

// Called after every durable round; must return quickly, no arm is being timed meanwhile.
using ProgressFunction = std::function<void(const SessionProgress& progress)>;

// A session that was inspected and planned, not run.
struct PlannedSession {
    Session session;  // plan, workload, place, arms, device; no rounds
    // From the inspection: opening all arms and comparing their weights, which takes longer than a replicate's opening, and decoding a few
    // tokens of base.
    ReplicateCost cost;
};
[[nodiscard]] PlannedSession plan_session(const RunRequest& request, const Preparation& preparation, const platform::DeviceLock& lock);

// Runs the session to its seal, which is at the first look that settles it, or to its abort. Throws Error if it cannot begin (nothing is
// stored then); once begun, everything that goes wrong ends in sink.abort and an Error(invalid) with the reason; Error(storage) or (usage)
// if the context before the position cannot be kept.
void run_session(const RunRequest& request, const Preparation& preparation, const platform::DeviceLock& lock, SessionSink& sink,
                 const ProgressFunction& progress);

}  // namespace kestrel::session
