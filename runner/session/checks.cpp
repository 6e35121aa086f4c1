#include "runner/session/checks.hpp"

#include <filesystem>

#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/session/worker_client.hpp"

namespace kestrel::session {
namespace {

// The truth takes seconds per token of a large model, and says nothing meanwhile.
constexpr std::chrono::seconds silence_limit{3600};

Job job_for(JobKind kind, const ModelCheck& what) {
    Job job;
    job.kind = kind;
    job.model = what.model;
    job.threads = what.threads;
    job.arms.push_back({ArmRole::base, std::filesystem::absolute(what.library).string(), what.switches, ""});
    return job;
}

CheckResult run(const Job& job) {
    CheckResult result;
    const WorkerEnd end = run_worker(job, std::nullopt, silence_limit, {}, [&](const nlohmann::json& message) {
        if (message.at("type") == "checked") {
            result.passed = message.at("passed").get<bool>();
            result.json = dump_json(message);
        }
        return false;
    });
    if (end.kind != WorkerEnd::Kind::finished) {
        throw Error(end.kind == WorkerEnd::Kind::failed ? static_cast<ExitCode>(end.error_code) : ExitCode::invalid, end.detail);
    }
    return result;
}

}  // namespace

CheckResult check_expected(const ModelCheck& what, const std::string& expected, const CheckTolerance& tolerance) {
    Job job = job_for(JobKind::check, what);
    job.expected = expected;
    job.shallow_tolerance = tolerance.shallow;
    job.deep_tolerance = tolerance.deep;
    job.deep_layers = tolerance.deep_layers;
    return run(job);
}

CheckResult check_reference(const ModelCheck& what, const ReferenceCheck& reference) {
    Job job = job_for(JobKind::check, what);
    job.reference = std::filesystem::absolute(reference.library).string();
    job.seed = reference.seed;
    job.check_tokens = reference.tokens;
    job.check_greedy = reference.greedy;
    job.shallow_tolerance = reference.tolerance;
    return run(job);
}

CheckResult check_operators(const std::string& operators, const std::string& library, const std::string& reference, std::uint64_t seed) {
    Job job = job_for(JobKind::check_operators, {.library = library, .model = {}, .switches = {}, .threads = 0});
    job.reference = std::filesystem::absolute(reference).string();
    job.operators = operators;
    job.seed = seed;
    return run(job);
}

}  // namespace kestrel::session
