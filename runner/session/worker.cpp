// Messages to the supervisor, one JSON object a line, by "type":
//   phase      {what, arm?}                     before every call into an engine that may not come back
//   note       {kind, text}                     for the session's log, as an event
//   inspected  {info, weights_digest, layout_id, weights_block, borrowed, ms_per_token, device, arms: [{role, engine, effective, known}]}
//   saved      see worker_context.cpp
//   ready      {borrowed, effective: by arm}    loaded and warmed up; answered by "go"
//   round      {windows: [3]}                   answered by "go" once it is durable
//   done       {state_digest: [3], distinct_tokens}
//   checked    see worker_check.cpp, worker_check_reference.cpp, worker_check_operators.cpp
//   timed      see worker_stopwatch.cpp
//   error      {code, message}                  then the worker leaves
#include "runner/session/worker.hpp"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "runner/identity/sha256.hpp"
#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"
#include "runner/session/context.hpp"
#include "runner/session/worker_internal.hpp"

namespace kestrel::session {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t ns_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
}

std::string_view bytes_of(const auto& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}

// Runs one replicate's windows on loaded arms. The context before the timed position was decoded by another worker, once for the session;
// here its states are read, and restored before every window.
class Replicator {
  public:
    Replicator(const Job& job, LoadedArms& arms, Reporter& reporter)
        : job_(&job), arms_(&arms), reporter_(&reporter), started_(Clock::now()), logits_(static_cast<std::size_t>(arms.info().vocab)) {
        if (job.position > 0) read_contexts();
    }

    void warm_up() {
        for (const JobArm& arm : job_->arms) {
            reporter_->phase("warm-up", arm.role);
            (void)window(arm.role);
        }
    }

    void super_round(int index, const std::array<ArmRole, 18>& schedule) {
        // The neighbour of the first window is the last arm, as for every other pair: the cycle is closed untimed.
        reporter_->phase("super-round " + std::to_string(index) + ", untimed window", schedule.back());
        (void)window(schedule.back());
        for (int round = 0; round < 6; ++round) {
            std::vector<Window> windows;
            for (int slot = 0; slot < arm_count; ++slot) {
                const ArmRole role = schedule.at(static_cast<std::size_t>(round) * arm_count + static_cast<std::size_t>(slot));
                reporter_->phase("super-round " + std::to_string(index) + ", round " + std::to_string(round), role);
                Window measured = window(role);
                measured.replicate = job_->replicate;
                measured.super_round = index;
                measured.round = round;
                measured.slot = slot;
                windows.push_back(std::move(measured));
            }
            reporter_->send({{"type", "round"}, {"windows", windows}});
            reporter_->wait_for_go();
        }
    }

    // SHA-256 of an arm's whole sequence state after the token sequence; "" if the engine cannot save it.
    std::string state_digest(ArmRole role) {
        reporter_->phase("final state", role);
        (void)window(role);
        const std::vector<std::byte> state = arms_->engine(role).save_state();
        return state.empty() ? std::string() : sha256_hex(bytes_of(state));
    }

    [[nodiscard]] int distinct_tokens() const { return static_cast<int>(seen_.size()); }

  private:
    // Nothing but decoding happens between the two clock readings of a token; memory is touched before.
    Window window(ArmRole role) {
        plugin::Engine& engine = arms_->engine(role);
        restart(engine, role);
        const auto position = static_cast<std::size_t>(job_->position);
        const std::size_t timed = job_->tokens.size() - position - 1;
        const std::int32_t* const feed = job_->tokens.data() + position + 1;
        Window result;
        result.arm = role;
        result.token_ns.assign(timed, 0);
        std::vector<std::int32_t> chosen(timed, 0);
        (void)engine.decode(job_->tokens[position]);

        const Clock::time_point begin = Clock::now();
        Clock::time_point before = begin;
        for (std::size_t i = 0; i < timed; ++i) {
            chosen[i] = engine.decode(feed[i]);
            const Clock::time_point after = Clock::now();
            result.token_ns[i] = ns_between(before, after);
            before = after;
        }
        result.started_ns = ns_between(started_, begin);
        result.window_ns = ns_between(begin, before);
        result.output_digest = digest(engine, chosen, role);
        return result;
    }

    void restart(plugin::Engine& engine, ArmRole role) {
        if (job_->position == 0) {
            engine.reset();
        } else {
            engine.restore_state(context_.at(index_of(role)));
        }
    }

    // What arms share is held once.
    void read_contexts() {
        for (const JobArm& arm : job_->arms) {
            const auto [state, fresh] = states_.try_emplace(arm.context.path);
            if (fresh) {
                reporter_->phase("reading the state after the context");
                state->second = read_context(arm.context.path, arm.context.sha256);
            }
            context_.at(index_of(arm.role)) = state->second;
        }
    }

    std::string digest(plugin::Engine& engine, const std::vector<std::int32_t>& chosen, ArmRole role) {
        engine.logits(logits_);
        for (const float value : logits_) {
            if (!std::isfinite(value)) {
                throw Error(ExitCode::invalid, "the logits of the " + std::string(name_of(role)) +
                                                   " arm are not finite: OUTPUT; check the engine with 'kestrel-ab check model'");
            }
        }
        seen_.insert(chosen.begin(), chosen.end());
        Sha256 hash;
        hash.update(bytes_of(chosen));
        hash.update(bytes_of(logits_));
        return hash.finish_hex();
    }

    const Job* job_;
    LoadedArms* arms_;
    Reporter* reporter_;
    Clock::time_point started_;
    std::vector<float> logits_;
    std::map<std::string, std::vector<std::byte>> states_;       // by file
    std::array<std::span<const std::byte>, arm_count> context_;  // by ArmRole
    std::set<std::int32_t> seen_;
};

nlohmann::json effective_by_arm(const Job& job, LoadedArms& arms) {
    nlohmann::json by_arm = nlohmann::json::object();
    for (const JobArm& arm : job.arms) by_arm[std::string(name_of(arm.role))] = arms.engine(arm.role).effective_switches();
    return by_arm;
}

// A rough figure for planning: the first tokens after opening, of which the first does not count.
double first_ms_per_token(plugin::Engine& engine) {
    constexpr int tokens = static_cast<int>(inspected_tokens) - 1;
    engine.reset();
    std::int32_t token = engine.decode(0);
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < tokens; ++i) token = engine.decode(token);
    return static_cast<double>(ns_between(begin, Clock::now())) / 1e6 / tokens;
}

void run_inspect(const Job& job, Reporter& reporter) {
    LoadedArms arms(job, reporter, true);
    nlohmann::json described = nlohmann::json::array();
    for (const JobArm& arm : job.arms) {
        nlohmann::json known = nlohmann::json::array();
        for (const auto& one : arms.library(arm.role).switches()) known.push_back({{"name", one.name}, {"values", one.values}});
        described.push_back({{"role", arm.role},
                             {"engine", arms.library(arm.role).engine_name()},
                             {"effective", arms.engine(arm.role).effective_switches()},
                             {"known", known}});
    }
    const plugin::ModelInfo info = arms.info();
    const ArmRole first = job.arms.at(0).role;
    reporter.phase("first tokens", first);
    const double ms_per_token = first_ms_per_token(arms.engine(first));
    reporter.send({{"type", "inspected"},
                   {"info",
                    {{"layers", info.layers},
                     {"gdn_layers", info.gdn_layers},
                     {"attention_layers", info.attention_layers},
                     {"vocab", info.vocab},
                     {"threads", info.threads},
                     {"parameters", info.parameters},
                     {"state_bytes", info.state_bytes}}},
                   {"weights_digest", arms.weights_digest()},
                   {"layout_id", arms.layout_id()},
                   {"weights_block", arms.weights_block()},
                   {"borrowed", arms.borrowed()},
                   {"ms_per_token", ms_per_token},
                   {"device", arms.library(first).device()},
                   {"arms", described}});
}

void run_replicate(const Job& job, Reporter& reporter) {
    LoadedArms arms(job, reporter, false);
    Replicator replicator(job, arms, reporter);
    replicator.warm_up();
    reporter.send({{"type", "ready"}, {"borrowed", arms.borrowed()}, {"effective", effective_by_arm(job, arms)}});
    reporter.wait_for_go();  // telemetry has its quiet beginning here
    int index = 0;
    for (const auto& schedule : job.schedule) replicator.super_round(index++, schedule);
    std::array<std::string, 3> digests;
    for (const JobArm& arm : job.arms) digests.at(index_of(arm.role)) = replicator.state_digest(arm.role);
    reporter.send({{"type", "done"}, {"state_digest", digests}, {"distinct_tokens", replicator.distinct_tokens()}});
}

int run(platform::LineChannel& channel) {
    Reporter reporter(channel);
    try {
        const auto request = channel.receive(std::chrono::seconds(30));
        if (request.status != platform::LineChannel::Status::line) return static_cast<int>(ExitCode::usage);
        const Job job = decode_job(request.line);
        switch (job.kind) {
            case JobKind::inspect:
                run_inspect(job, reporter);
                break;
            case JobKind::context:
                run_context(job, reporter);
                break;
            case JobKind::replicate:
                run_replicate(job, reporter);
                break;
            case JobKind::check:
                if (job.expected.empty()) {
                    run_check_reference(job, reporter);
                } else {
                    run_check(job, reporter);
                }
                break;
            case JobKind::check_operators:
                run_check_operators(job, reporter);
                break;
            case JobKind::stopwatch:
                run_stopwatch(job, reporter);
                break;
        }
        return 0;
    } catch (const Error& error) {
        reporter.send({{"type", "error"}, {"code", static_cast<int>(error.code())}, {"message", error.what()}});
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        reporter.send({{"type", "error"}, {"code", static_cast<int>(ExitCode::invalid)}, {"message", error.what()}});
        return static_cast<int>(ExitCode::invalid);
    }
}

}  // namespace

void Reporter::send(const nlohmann::json& message) {
    if (!channel_->send(dump_json(message))) ::_exit(static_cast<int>(ExitCode::invalid));
}

void Reporter::phase(const std::string& what, std::optional<ArmRole> arm) {
    nlohmann::json message{{"type", "phase"}, {"what", what}};
    if (arm) message["arm"] = *arm;
    send(message);
}

void Reporter::note_weights(const std::string& text) {
    send({{"type", "note"}, {"kind", "weights"}, {"text", text}});
}

void Reporter::note_no_cache(const std::string& text) {
    send({{"type", "note"}, {"kind", no_cache_event}, {"text", text}});
}

void Reporter::wait_for_go() {
    const auto answer = channel_->receive(std::chrono::minutes(10));
    if (answer.status != platform::LineChannel::Status::line) ::_exit(static_cast<int>(ExitCode::invalid));
}

void worker_main() {
    platform::die_with_parent();
    platform::LineChannel channel(platform::worker_channel_fd);
    ::_exit(run(channel));
}

}  // namespace kestrel::session
