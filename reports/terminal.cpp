#include "reports/format.hpp"
#include "reports/layout.hpp"
#include "reports/place_text.hpp"
#include "reports/session_text.hpp"
#include "runner/record/names.hpp"

namespace kestrel {
namespace {

constexpr std::array<ArmRole, 3> all_arms{ArmRole::base, ArmRole::control, ArmRole::candidate};

std::string state_text(const Session& session) {
    std::string text = std::string(name_of(session.state)) + "; started " + session.started_at;
    if (!session.ended_at.empty()) text += ", ended " + session.ended_at;
    return text;
}

std::string workload_text(const Workload& workload) {
    return workload.launch_mode + ", " + count_text(workload.threads, "thread") + ", position " + std::to_string(workload.position) + ", " +
           count_text(static_cast<std::int64_t>(workload.tokens.size()) - 1, "timed token") + " per window; hash " +
           short_hash(workload.sha256);
}

std::string model_text(const Workload& workload) {
    return workload.model_name + ": " + count_text(workload.layers, "layer") + " (" + std::to_string(workload.gdn_layers) + " GDN, " +
           std::to_string(workload.attention_layers) + " attention), vocabulary " + std::to_string(workload.vocab) + ", weights " +
           short_hash(workload.weights_digest);
}

std::string header(const Session& session) {
    std::string text = wrapped("Session ", session.uuid);
    text += field("experiment", session.plan.experiment + ", version " + std::to_string(session.plan.experiment_version));
    text += field("state", state_text(session));
    text += field("host", session.host);
    text += field("device", session.device);
    text += field("model", model_text(session.workload));
    text += field("workload", workload_text(session.workload));
    return text + field("one place", place_text(session.place));
}

std::string rounds_section(const Session& session, RoundDetail detail) {
    const std::string table = round_table(session.windows, detail);
    if (table.empty()) return "\nRounds: none is finished.\n";
    const bool all = detail == RoundDetail::all;
    return std::string("\n") + (all ? "Rounds" : "Super-rounds, means of their rounds") + " (ms/token; ratio = base / candidate)\n" + table;
}

std::string arms_section(const Estimate& estimate) {
    Table table;
    table.add_column("arm", Align::left);
    for (const char* title : {"mean ms", "median ms", "min ms", "max ms", "spread %", "p99 token ms", "tokens/s", "windows"}) {
        table.add_column(title, Align::right);
    }
    for (const ArmSummary& arm : estimate.arms) {
        table.add_row({std::string(name_of(arm.arm)), ms_text(arm.mean_ms), ms_text(arm.median_ms), ms_text(arm.min_ms),
                       ms_text(arm.max_ms), fixed_text(arm.spread_percent, 2), ms_text(arm.p99_token_ms),
                       fixed_text(arm.tokens_per_second, 2), std::to_string(arm.windows)});
    }
    return "\nArms (of complete replicates; spread = (max - min) / min)\n" + table.text();
}

std::string ratio_line(const Interval& interval) {
    if (interval.replicates < 1) return "none: no replicate is complete";
    if (interval.replicates == 1) return interval_text(interval) + ", conditional on placement: one replicate gives no interval";
    return interval_text(interval) + ", " + confidence_text(interval.confidence) +
           " interval over K = " + std::to_string(interval.replicates) + " replicates";
}

std::string result_section(const Verdict& verdict) {
    const Estimate& estimate = verdict.estimate;
    const double base_ms = estimate.arms[index_of(ArmRole::base)].mean_ms;
    std::string saved = ms_text(estimate.saved_ms_per_token) + " ms/token";
    if (base_ms > 0.0) saved += " (" + percent_text(estimate.saved_ms_per_token / base_ms * 100.0) + " of base)";
    std::string text = "\nResult (ratio = base / candidate ms per token; above 1 the candidate is faster)\n";
    text += field("saved", saved);
    text += field("ratio", ratio_line(estimate.candidate));
    text +=
        field("other ratios", "of means " + ratio_text(estimate.mean_ratio) + ", of 99th percentiles " + ratio_text(estimate.p99_ratio));
    text += field("tail", "means " + interval_text(estimate.mean_minus_robust) + ", 99th percentiles " +
                              interval_text(estimate.p99_minus_robust) + " times the robust ratio");
    text += field("control", ratio_line(estimate.control));
    text += field("margin", percent_text(verdict.margin * 100.0));
    text += field("verdict", name_of(verdict.kind));
    for (const std::string& reason : verdict.reasons) text += wrapped("    - ", reason);
    return text;
}

std::string no_result_section(const Session& session) {
    const std::size_t rounds = round_rows(session.windows, RoundDetail::all).size();
    const std::int64_t planned = std::int64_t{6} * session.plan.replicates * session.plan.super_rounds;
    std::string text = "\nResult: no verdict. ";
    switch (session.state) {
        case SessionState::running:
            text += "The session is still running, or its runner was killed.";
            break;
        case SessionState::aborted:
            text += "The session was aborted.";
            break;
        case SessionState::sealed:
            text += "The session was sealed without one.";
            break;
    }
    text += "\n" + field("finished", std::to_string(rounds) + " of " + count_text(planned, "planned round"));
    for (const Replicate& replicate : session.replicates) {
        if (replicate.status == "finished") continue;
        text += field("replicate " + std::to_string(replicate.index + 1),
                      replicate.status + (replicate.detail.empty() ? "" : ": " + replicate.detail));
    }
    for (const Event& event : session.events) {
        if (event.kind == "aborted" || event.kind == "crash") text += field(event.kind, event.at + " " + event.detail);
    }
    return text;
}

std::string artifacts_section(const Session& session) {
    std::string text = "\nArms' artifacts (SHA-256) and switches\n";
    for (const ArmRole role : all_arms) {
        const Arm& arm = session.arms.at(index_of(role));
        text += field(name_of(role), arm.artifact_sha256.empty() ? "not registered" : arm.artifact_sha256);
        text += field("", "switches: " + switches_text(arm.switches) + "; effective: " + switches_text(arm.effective_switches) + "; " +
                              (arm.borrowed_memory ? "memory lent by the runner" : "its own memory"));
    }
    return text;
}

std::string footer(const Session& session, const std::string& database_path) {
    const Plan& plan = session.plan;
    std::string text = "\nPlan\n";
    text += field("plan", plan.sha256.empty() ? "not hashed" : plan.sha256);
    if (!plan.policy.empty()) text += field("policy", plan.policy);
    text += field("seed", std::to_string(plan.seed));
    const auto finished = static_cast<std::int64_t>(session.replicates.size());
    const bool early = session.state == SessionState::sealed && finished < plan.replicates;
    text += field("rounds", (early ? std::to_string(finished) + " of at most " : "") + count_text(plan.replicates, "replicate") + " of " +
                                count_text(plan.super_rounds, "super-round") + " of 6 rounds; outputs " + plan.output_rule);
    if (!session.seal_sha256.empty()) text += field("seal", session.seal_sha256);
    text += field("runner", session.runner_version);
    text += field("database", database_path);
    text += field("quote", "session " + session.uuid);
    return text + field("show again", "kestrel-ab show " + session.uuid);
}

}  // namespace

std::string session_text(const Session& session, const SessionTextOptions& options) {
    std::string text = header(session) + rounds_section(session, options.detail);
    if (session.verdict && session.state == SessionState::sealed) {
        text += arms_section(session.verdict->estimate) + result_section(*session.verdict);
    } else {
        text += no_result_section(session);
    }
    return text + artifacts_section(session) + footer(session, options.database_path);
}

}  // namespace kestrel
