// Message "checked": {tokens, vocab, max_abs_difference, max_abs_logit, relative, differing, elements, argmax_equal, greedy_equal,
// greedy_total, tolerance, engine, passed}.
#include <algorithm>
#include <cmath>

#include "runner/record/error.hpp"
#include "runner/session/expected_outputs.hpp"
#include "runner/session/worker_internal.hpp"

namespace kestrel::session {
namespace {

struct Comparison {
    double max_abs_difference = 0.0;
    double max_abs_logit = 0.0;
    std::size_t differing = 0;
    std::size_t argmax_equal = 0;
    std::size_t greedy_equal = 0;
};

std::size_t argmax(const float* row, std::size_t count) {
    return static_cast<std::size_t>(std::max_element(row, row + count) - row);
}

void compare_row(const std::vector<float>& found, const float* expected, Comparison& all) {
    for (std::size_t i = 0; i < found.size(); ++i) {
        const double difference = std::fabs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
        // Written so that a NaN counts as the worst difference instead of as none.
        if (!(difference <= all.max_abs_difference)) all.max_abs_difference = std::isfinite(difference) ? difference : INFINITY;
        all.max_abs_logit = std::max(all.max_abs_logit, std::fabs(static_cast<double>(expected[i])));
        if (found[i] != expected[i]) ++all.differing;
    }
    if (argmax(found.data(), found.size()) == argmax(expected, found.size())) ++all.argmax_equal;
}

}  // namespace

void run_check(const Job& job, Reporter& reporter) {
    const ExpectedOutputs expected = read_expected_outputs(job.expected);
    Job sized = job;  // room in the cache for the fed tokens and the free-running ones
    sized.tokens.assign(expected.tokens.size() + expected.greedy.size(), 0);
    LoadedArms arms(sized, reporter, false);
    plugin::Engine& engine = arms.engine(job.arms.at(0).role);
    if (static_cast<std::size_t>(arms.info().vocab) != expected.vocab) {
        throw Error(ExitCode::usage, "the model has " + std::to_string(arms.info().vocab) + " logits per token, " + job.expected + " has " +
                                         std::to_string(expected.vocab) + "; these do not belong together");
    }
    Comparison all;
    std::vector<float> logits(expected.vocab);
    reporter.phase("decode the given tokens");
    engine.reset();
    std::int32_t next = 0;
    for (std::size_t i = 0; i < expected.tokens.size(); ++i) {
        next = engine.decode(expected.tokens[i]);
        engine.logits(logits);
        compare_row(logits, expected.logits.data() + i * expected.vocab, all);
    }
    reporter.phase("decode greedily");
    for (std::size_t i = 0; i < expected.greedy.size(); ++i) {
        if (next == expected.greedy[i]) ++all.greedy_equal;
        if (i + 1 < expected.greedy.size()) next = engine.decode(next);
    }
    const double relative = all.max_abs_logit > 0.0 ? all.max_abs_difference / all.max_abs_logit : INFINITY;
    const double tolerance = arms.info().layers < job.deep_layers ? job.shallow_tolerance : job.deep_tolerance;
    const bool passed = relative <= tolerance && all.argmax_equal == expected.tokens.size() && all.greedy_equal == expected.greedy.size();
    reporter.send({{"type", "checked"},
                   {"engine", arms.library(job.arms.at(0).role).engine_name()},
                   {"tokens", expected.tokens.size()},
                   {"vocab", expected.vocab},
                   {"max_abs_difference", all.max_abs_difference},
                   {"max_abs_logit", all.max_abs_logit},
                   {"relative", relative},
                   {"tolerance", tolerance},
                   {"differing", all.differing},
                   {"elements", expected.logits.size()},
                   {"argmax_equal", all.argmax_equal},
                   {"greedy_equal", all.greedy_equal},
                   {"greedy_total", expected.greedy.size()},
                   {"passed", passed}});
}

}  // namespace kestrel::session
