// Message "checked": {check: "model", tokens, vocab, max_abs_difference, max_abs_logit, relative, differing, elements, argmax_equal,
// argmax_excused, greedy_equal, greedy_excused, greedy_skipped, greedy_total, tolerance, engine, passed}.
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
}

// Position by position, where the tolerance in logits is known: after all of them.
ChoiceCount compare_argmax(const std::vector<std::size_t>& chosen, const ExpectedOutputs& expected, double tolerance) {
    ChoiceCount count;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const float* row = expected.logits.data() + i * expected.vocab;
        const std::size_t best = argmax(row, expected.vocab);
        count.add(chosen[i] == best, static_cast<double>(row[best]) - static_cast<double>(row[chosen[i]]), tolerance);
    }
    return count;
}

// Free-running. The other implementation's margins are not in the file; if each of its logits is within the tolerance of the engine's, the
// engine prefers its own choice to the expected one by at most twice the tolerance too. `next` and `logits` are the last fed token's.
ChoiceCount compare_greedy(plugin::Engine& engine, const ExpectedOutputs& expected, std::int32_t next, std::vector<float>& logits,
                           double tolerance) {
    ChoiceCount count;
    for (std::size_t i = 0; i < expected.greedy.size(); ++i) {
        const auto wanted = static_cast<std::size_t>(expected.greedy[i]);
        const auto chosen = static_cast<std::size_t>(next);
        count.add(chosen == wanted, static_cast<double>(logits.at(chosen)) - static_cast<double>(logits.at(wanted)), tolerance);
        if (chosen != wanted) {
            count.skipped = expected.greedy.size() - i - 1;
            break;
        }
        if (i + 1 == expected.greedy.size()) break;
        next = engine.decode(next);
        engine.logits(logits);
    }
    return count;
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
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < expected.tokens.size(); ++i) {
        next = engine.decode(expected.tokens[i]);
        engine.logits(logits);
        compare_row(logits, expected.logits.data() + i * expected.vocab, all);
        chosen.push_back(argmax(logits.data(), logits.size()));
    }
    const double relative = all.max_abs_logit > 0.0 ? all.max_abs_difference / all.max_abs_logit : INFINITY;
    const double tolerance = arms.info().layers < job.deep_layers ? job.shallow_tolerance : job.deep_tolerance;
    const ChoiceCount by_position = compare_argmax(chosen, expected, tolerance * all.max_abs_logit);
    reporter.phase("decode greedily");
    const ChoiceCount greedy = compare_greedy(engine, expected, next, logits, tolerance * all.max_abs_logit);
    const bool passed = relative <= tolerance && by_position.wrong == 0 && greedy.wrong == 0;
    reporter.send({{"type", "checked"},
                   {"check", "model"},
                   {"engine", arms.library(job.arms.at(0).role).engine_name()},
                   {"tokens", expected.tokens.size()},
                   {"vocab", expected.vocab},
                   {"max_abs_difference", all.max_abs_difference},
                   {"max_abs_logit", all.max_abs_logit},
                   {"relative", relative},
                   {"tolerance", tolerance},
                   {"differing", all.differing},
                   {"elements", expected.logits.size()},
                   {"argmax_equal", by_position.equal},
                   {"argmax_excused", by_position.excused},
                   {"greedy_equal", greedy.equal},
                   {"greedy_excused", greedy.excused},
                   {"greedy_skipped", greedy.skipped},
                   {"greedy_total", expected.greedy.size()},
                   {"passed", passed}});
}

}  // namespace kestrel::session
