#include "runner/session/stopwatch.hpp"

#include <algorithm>
#include <cmath>

#include "runner/identity/artifact_store.hpp"
#include "runner/plan/plan.hpp"
#include "runner/record/error.hpp"
#include "runner/record/names.hpp"
#include "runner/session/arm_copies.hpp"
#include "runner/session/worker_client.hpp"
#include "runner/stats/summary.hpp"

namespace kestrel::session {
namespace {

constexpr std::chrono::seconds silence_limit{300};
constexpr std::uint64_t token_seed = 20260102;
constexpr int smallest_vocabulary = 64;  // every model has these tokens

}  // namespace

StopwatchReading read_stopwatch(const StopwatchRequest& request, const platform::DeviceLock& lock) {
    const Artifact artifact = register_artifact(request.library, request.work_directory + "/artifacts");
    const ArmCopies copies(request.work_directory, "stopwatch", artifact, artifact);
    std::vector<double> contrasts;
    std::vector<double> times;
    for (int process = 0; process < request.processes; ++process) {
        Job job;
        job.kind = JobKind::stopwatch;
        job.model = request.model;
        job.threads = request.threads;
        job.tokens = teacher_tokens(token_seed, request.tokens + 1, smallest_vocabulary);
        job.seconds = request.seconds;
        job.arms = {{ArmRole::base, copies.path(ArmRole::base), request.base, artifact.sha256},
                    {ArmRole::candidate, copies.path(ArmRole::candidate), request.other, artifact.sha256}};
        if (process % 2 != 0) std::swap(job.arms[0], job.arms[1]);
        const WorkerEnd end = run_worker(job, lock.fd(), silence_limit, {}, [&](const nlohmann::json& message) {
            if (message.at("type") != "timed") return false;
            const auto base = message.at("base_seconds").get<std::vector<double>>();
            const auto other = message.at("other_seconds").get<std::vector<double>>();
            std::vector<double> ratios;
            for (std::size_t i = 0; i < base.size(); ++i) ratios.push_back(std::log(base[i] / other[i]));
            contrasts.push_back(median(ratios));
            times.push_back(median(base) * 1000.0 / message.at("tokens").get<double>());
            return false;
        });
        if (end.kind != WorkerEnd::Kind::finished)
            throw Error(ExitCode::invalid, "the stopwatch's worker " + name_of(end.kind) + ": " + end.detail);
    }
    StopwatchReading reading;
    reading.processes = request.processes;
    reading.d = mean(contrasts);
    reading.standard_error = standard_deviation(contrasts) / std::sqrt(static_cast<double>(contrasts.size()));
    reading.ms_per_token = mean(times);
    return reading;
}

}  // namespace kestrel::session
