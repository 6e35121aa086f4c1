// How long two arms take for the same tokens, without schedule, estimator or plan: a second opinion on a planted difference.
// Answer: timed {base_seconds: [...], other_seconds: [...], tokens}, each a pair of neighbouring blocks.
#include <chrono>

#include "runner/session/worker_internal.hpp"

namespace kestrel::session {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of_block(plugin::Engine& engine, const std::vector<std::int32_t>& tokens) {
    engine.reset();
    (void)engine.decode(tokens[0]);
    const Clock::time_point begin = Clock::now();
    for (std::size_t i = 1; i < tokens.size(); ++i) (void)engine.decode(tokens[i]);
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

void run_stopwatch(const Job& job, Reporter& reporter) {
    LoadedArms arms(job, reporter, false);
    plugin::Engine& base = arms.engine(ArmRole::base);
    plugin::Engine& other = arms.engine(ArmRole::candidate);
    reporter.phase("warm-up");
    (void)seconds_of_block(base, job.tokens);
    (void)seconds_of_block(other, job.tokens);
    std::vector<double> base_seconds;
    std::vector<double> other_seconds;
    const Clock::time_point begin = Clock::now();
    while (std::chrono::duration<double>(Clock::now() - begin).count() < job.seconds || base_seconds.size() % 2 != 0) {
        reporter.phase("stopwatch");
        // Base first, other first, in turn: whatever grows steadily cancels.
        if (base_seconds.size() % 2 == 0) {
            base_seconds.push_back(seconds_of_block(base, job.tokens));
            other_seconds.push_back(seconds_of_block(other, job.tokens));
        } else {
            other_seconds.push_back(seconds_of_block(other, job.tokens));
            base_seconds.push_back(seconds_of_block(base, job.tokens));
        }
    }
    reporter.send({{"type", "timed"}, {"base_seconds", base_seconds}, {"other_seconds", other_seconds}, {"tokens", job.tokens.size() - 1}});
}

}  // namespace kestrel::session
