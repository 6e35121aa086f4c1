#include "tests/sim/pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "runner/plan/boundaries.hpp"
#include "runner/record/names.hpp"
#include "runner/stats/assess.hpp"
#include "runner/stats/estimate.hpp"
#include "runner/stats/interval.hpp"
#include "runner/stats/summary.hpp"

namespace kestrel::sim {
namespace {

constexpr std::int64_t plans_per_row = 64;  // sessions take turns: schedules vary, and making them costs little

Plan plan_of(const Row& row, const Options& options, std::uint64_t index) {
    PlanRequest request;
    request.seed = options.seed * 1'000'003 + index;
    request.replicates = row.replicates;
    request.super_rounds = row.super_rounds;
    request.tokens = options.tokens;
    request.margin = row.margin;
    return make_plan(request);
}

Evidence clean_outputs() {
    Evidence evidence;
    evidence.outputs_equal = true;
    evidence.outputs_vacuous = false;
    return evidence;
}

bool excludes(const Interval& interval, double value) {
    return interval.lo > value || interval.hi < value;
}

void run_session(const Row& row, const Plan& plan, Normal& normal, Counts& counts) {
    std::vector<Window> windows;
    windows.reserve(static_cast<std::size_t>(row.replicates * row.super_rounds * 18));
    std::vector<double> contrasts;
    int measured = 0;
    for (const Look& look : plan.looks) {
        simulate(row.scenario, plan, measured, look.replicates, normal, windows);
        measured = look.replicates;
        const Assessment assessment = assess(plan, windows, clean_outputs());
        contrasts = assessment.verdict.estimate.replicate_d;
        if (!assessment.may_stop) continue;
        ++counts.verdicts.at(static_cast<std::size_t>(assessment.verdict.kind));
        break;
    }
    counts.replicates += measured;
    if (measured < plan.replicates) {
        simulate(row.scenario, plan, measured, plan.replicates, normal, windows);
        contrasts = estimate(plan, windows).replicate_d;
    }
    const Interval all = t_interval(contrasts, plan.confidence);
    counts.misses += excludes(all, row.scenario.truth()) ? 1 : 0;
    counts.excludes_0 += excludes(all, 0.0) ? 1 : 0;
    ++counts.sessions;
}

void run_naive(const Row& row, const Plan& one_process, Normal& normal, Counts& counts) {
    std::vector<Window> windows;
    simulate(row.scenario, one_process, 0, 1, normal, windows);
    const NaiveAnswers answers = naive_answers(windows);
    counts.naive_t += answers.t ? 1 : 0;
    counts.naive_u += answers.u ? 1 : 0;
    counts.naive_sigma += answers.sigma ? 1 : 0;
}

// Mann-Whitney's U by the normal approximation: good from about 20 values a side.
bool mann_whitney(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<std::pair<double, int>> all;
    for (const double value : a) all.emplace_back(value, 0);
    for (const double value : b) all.emplace_back(value, 1);
    std::sort(all.begin(), all.end());
    double ranks = 0.0;
    for (std::size_t i = 0; i < all.size(); ++i) ranks += all[i].second == 0 ? static_cast<double>(i + 1) : 0.0;
    const double n = static_cast<double>(a.size());
    const double m = static_cast<double>(b.size());
    const double u = ranks - n * (n + 1.0) / 2.0;
    return std::abs(u - n * m / 2.0) / std::sqrt(n * m * (n + m + 1.0) / 12.0) > 1.959964;
}

}  // namespace

void Counts::add(const Counts& other) {
    sessions += other.sessions;
    misses += other.misses;
    excludes_0 += other.excludes_0;
    for (std::size_t i = 0; i < verdicts.size(); ++i) verdicts[i] += other.verdicts[i];
    replicates += other.replicates;
    naive_t += other.naive_t;
    naive_u += other.naive_u;
    naive_sigma += other.naive_sigma;
}

NaiveAnswers naive_answers(const std::vector<Window>& windows) {
    std::vector<double> base;
    std::vector<double> candidate;
    for (const Window& window : windows) {
        if (window.arm == ArmRole::base) base.push_back(window.ms_per_token());
        if (window.arm == ArmRole::candidate) candidate.push_back(window.ms_per_token());
    }
    std::vector<double> contrasts;  // one window of each arm in every round, in order
    for (std::size_t i = 0; i < base.size(); ++i) contrasts.push_back(std::log(base[i] / candidate[i]));
    NaiveAnswers answers;
    const Interval interval = t_interval(contrasts, 0.95);
    answers.t = excludes(interval, 0.0);
    answers.u = mann_whitney(base, candidate);
    const double error = interval.sd / std::sqrt(static_cast<double>(contrasts.size()));
    // hyperfine prints a ratio of means with the error that the scatter of single runs propagates to; readers take it for significant where
    // the error does not reach 1.
    const double relative = std::hypot(standard_deviation(base) / mean(base), standard_deviation(candidate) / mean(candidate));
    const double ratio = mean(base) / mean(candidate);
    answers.spread = std::abs(ratio - 1.0) > ratio * relative;
    answers.sigma = std::abs(interval.d) > 2.6 * error && std::abs(interval.d) > std::log(1.01);
    return answers;
}

Counts run_row(const Row& row, const Options& options) {
    std::vector<Plan> plans;
    for (std::int64_t i = 0; i < plans_per_row; ++i) plans.push_back(plan_of(row, options, static_cast<std::uint64_t>(i)));
    Row single = row;  // as many windows as the first look, all in one process
    single.replicates = 1;
    single.super_rounds = row.super_rounds * replicates_per_look;
    const Plan one_process = plan_of(single, options, 0);

    const auto threads = static_cast<std::size_t>(std::max(options.threads, 1));
    std::vector<Counts> parts(threads);
    const auto work = [&](std::size_t thread) {
        // Each session has its own stream, so the table does not depend on the number of threads.
        for (auto i = static_cast<std::int64_t>(thread); i < options.sessions; i += static_cast<std::int64_t>(threads)) {
            Normal normal(Random(options.seed, RandomPurpose::simulation, static_cast<std::uint64_t>(i)));
            run_session(row, plans[static_cast<std::size_t>(i % plans_per_row)], normal, parts[thread]);
            if (options.naive) run_naive(row, one_process, normal, parts[thread]);
        }
    };
    std::vector<std::thread> running;
    for (std::size_t i = 1; i < threads; ++i) running.emplace_back(work, i);
    work(0);
    for (std::thread& thread : running) thread.join();
    Counts counts;
    for (const Counts& part : parts) counts.add(part);
    return counts;
}

}  // namespace kestrel::sim
