// Message "checked": {check: "model", engine, reference, seed, tokens, vocab, parts: [{name, relative, rounding, tolerance, passed}],
// positions: [[hidden, final norm, logits], ...], argmax_equal, argmax_excused, greedy_equal, greedy_excused, greedy_skipped, greedy_total,
// passed}. All differences are relative to the largest reference value of the same position.
//
// The tolerance is not a constant: models amplify rounding by very different factors. The reference runs twice, in double and with every
// step's result rounded to f32; their difference is what one rounding per result does to this model ("rounding"). An f32 engine also rounds
// inside its sums: serially summed, n products of random sign err by sqrt(n / 2) times as much as one rounding of the result (partial sums
// grow as sqrt(i), each rounded with the same relative error: the sum of i / 3 up to n is n^2 / 6, against n / 3). Twice that for comparing
// one draw's maximum with another's; n is the model's width.
#include <algorithm>
#include <cmath>

#include "runner/plan/plan.hpp"
#include "runner/record/error.hpp"
#include "runner/session/worker_internal.hpp"

namespace kestrel::session {
namespace {

constexpr const char* rounding_switch = "KESTREL_TRUTH_ROUND";
constexpr std::array<const char*, 3> part_names{"hidden", "final norm", "logits"};
using Differences = std::array<double, 3>;

struct Position {
    std::array<std::vector<float>, 3> parts;  // as part_names
    std::int32_t next = 0;
};

struct Trace {
    std::vector<Position> fed;
    std::vector<Position> chosen;  // free-running, from the last fed token's choice on
};

Position step(plugin::Engine& engine, std::int32_t token, std::size_t vocab) {
    Position position;
    position.next = engine.decode(token);
    position.parts = {engine.hidden(), engine.final_norm(), std::vector<float>(vocab)};
    engine.logits(position.parts[2]);
    return position;
}

// One engine at a time, so that a large model is in memory once.
Trace trace_of(const Job& job, const plugin::EngineLibrary& library, const std::vector<SwitchSetting>& switches) {
    plugin::OpenRequest request;
    request.model = job.model;
    request.switches = switches;
    request.threads = static_cast<std::uint32_t>(job.threads);
    request.max_positions = static_cast<std::uint32_t>(job.check_tokens + job.check_greedy);
    plugin::Engine engine = library.open(request);
    const int vocab = engine.info().vocab;
    engine.reset();
    Trace trace;
    for (const std::int32_t token : teacher_tokens(job.seed, job.check_tokens, vocab)) {
        trace.fed.push_back(step(engine, token, static_cast<std::size_t>(vocab)));
    }
    std::int32_t next = trace.fed.back().next;
    for (int i = 0; i < job.check_greedy; ++i) {
        trace.chosen.push_back(step(engine, next, static_cast<std::size_t>(vocab)));
        next = trace.chosen.back().next;
    }
    return trace;
}

double relative(const std::vector<float>& found, const std::vector<float>& truth) {
    if (found.size() != truth.size()) return INFINITY;
    double largest = 0.0;
    double magnitude = 0.0;
    for (std::size_t i = 0; i < truth.size(); ++i) {
        const double difference = std::fabs(static_cast<double>(found[i]) - static_cast<double>(truth[i]));
        if (!(difference <= largest)) largest = std::isfinite(difference) ? difference : INFINITY;
        magnitude = std::max(magnitude, std::fabs(static_cast<double>(truth[i])));
    }
    return magnitude > 0.0 ? largest / magnitude : largest;
}

std::vector<Differences> differences(const Trace& found, const Trace& truth) {
    std::vector<Differences> all;
    for (std::size_t i = 0; i < truth.fed.size(); ++i) {
        Differences one{};
        for (std::size_t p = 0; p < one.size(); ++p) one[p] = relative(found.fed[i].parts[p], truth.fed[i].parts[p]);
        all.push_back(one);
    }
    return all;
}

double largest(const std::vector<Differences>& all, std::size_t part) {
    double value = 0.0;
    for (const Differences& one : all) value = std::max(value, one[part]);
    return value;
}

// Tokens chosen by two engines after the same sequence. A different choice is excused where the truth prefers its own by no more than both
// logits may be off together.
ChoiceCount compare_choices(const std::vector<Position>& found, const std::vector<Position>& truth, double tolerance, bool diverging) {
    ChoiceCount count;
    for (std::size_t i = 0; i < truth.size(); ++i) {
        const std::vector<float>& logits = truth[i].parts[2];
        const auto best = static_cast<std::size_t>(truth[i].next);
        const auto other = static_cast<std::size_t>(found[i].next);
        count.add(best == other, static_cast<double>(logits.at(best)) - static_cast<double>(logits.at(other)),
                  tolerance * largest_magnitude(logits));
        // After another choice the sequences are different ones.
        if (diverging && best != other) {
            count.skipped = truth.size() - i - 1;
            break;
        }
    }
    return count;
}

bool has_rounding(const plugin::EngineLibrary& reference) {
    const auto all = reference.switches();
    return std::any_of(all.begin(), all.end(), [](const auto& one) { return one.name == rounding_switch; });
}

nlohmann::json number(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

}  // namespace

double largest_magnitude(const std::vector<float>& values) {
    double magnitude = 0.0;
    for (const float value : values) magnitude = std::max(magnitude, std::fabs(static_cast<double>(value)));
    return magnitude;
}

void ChoiceCount::add(bool same, double margin, double tolerance) {
    if (same) {
        ++equal;
    } else if (margin <= 2.0 * tolerance) {
        ++excused;
    } else {
        ++wrong;
    }
}

void run_check_reference(const Job& job, Reporter& reporter) {
    reporter.phase("load library", ArmRole::base);
    const plugin::EngineLibrary engine(job.arms.at(0).library);
    reporter.phase("load the reference");
    const plugin::EngineLibrary reference(job.reference);
    if (!has_rounding(reference) && job.shallow_tolerance <= 0.0) {
        throw Error(ExitCode::usage, reference.engine_name() + " cannot show how much the model amplifies rounding (no switch " +
                                         rounding_switch + "); state --tolerance, or use the truth engine as --reference");
    }
    reporter.phase("decode", ArmRole::base);
    const Trace found = trace_of(job, engine, job.arms.at(0).switches);
    reporter.phase("decode with the reference");
    const Trace truth = trace_of(job, reference, {});
    std::vector<Differences> rounding(truth.fed.size(), Differences{});
    if (has_rounding(reference)) {
        reporter.phase("decode with the reference, rounded");
        rounding = differences(trace_of(job, reference, {{rounding_switch, "f32"}}), truth);
    }
    const std::vector<Differences> off = differences(found, truth);
    const double growth = 2.0 * std::sqrt(static_cast<double>(truth.fed[0].parts[0].size()) / 2.0);
    bool passed = true;
    double logits_tolerance = 0.0;
    nlohmann::json parts = nlohmann::json::array();
    for (std::size_t p = 0; p < part_names.size(); ++p) {
        const double tolerance = job.shallow_tolerance > 0.0 ? job.shallow_tolerance : growth * largest(rounding, p);
        const bool good = largest(off, p) <= tolerance;
        passed &= good;
        if (p == 2) logits_tolerance = tolerance;
        parts.push_back({{"name", part_names[p]},
                         {"relative", number(largest(off, p))},
                         {"rounding", number(largest(rounding, p))},
                         {"tolerance", number(tolerance)},
                         {"passed", good}});
    }
    nlohmann::json positions = nlohmann::json::array();
    for (const Differences& one : off) positions.push_back({number(one[0]), number(one[1]), number(one[2])});
    const ChoiceCount argmax = compare_choices(found.fed, truth.fed, logits_tolerance, false);
    // If the last fed token's choices differ, argmax has judged that, and nothing that follows is comparable.
    const bool together = found.fed.back().next == truth.fed.back().next;
    ChoiceCount greedy = together ? compare_choices(found.chosen, truth.chosen, logits_tolerance, true) : ChoiceCount{};
    if (!together) greedy.skipped = truth.chosen.size();
    passed = passed && argmax.wrong == 0 && greedy.wrong == 0;
    reporter.send({{"type", "checked"},
                   {"check", "model"},
                   {"engine", engine.engine_name()},
                   {"reference", reference.engine_name()},
                   {"seed", job.seed},
                   {"tokens", truth.fed.size()},
                   {"vocab", truth.fed[0].parts[2].size()},
                   {"parts", parts},
                   {"positions", positions},
                   {"argmax_equal", argmax.equal},
                   {"argmax_excused", argmax.excused},
                   {"greedy_equal", greedy.equal},
                   {"greedy_excused", greedy.excused},
                   {"greedy_skipped", greedy.skipped},
                   {"greedy_total", truth.chosen.size()},
                   {"passed", passed}});
}

}  // namespace kestrel::session
