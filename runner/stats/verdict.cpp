#include "runner/stats/verdict.hpp"

#include <algorithm>
#include <cmath>

#include "runner/record/names.hpp"
#include "runner/stats/interval.hpp"
#include "runner/stats/looks.hpp"
#include "runner/stats/published.hpp"

namespace kestrel {
namespace {

// A log ratio as the percentage by which the ratio differs from 1.
std::string percent(double d) {
    const std::string digits = rounded_like("0.000", std::expm1(d) * 100.0);
    if (digits == "-0.000") return "+0.000 %";
    return (digits.front() == '-' ? "" : "+") + digits + " %";
}

std::string bounds(const Interval& interval) {
    return "[" + percent(interval.lo) + ", " + percent(interval.hi) + "]";
}

bool is_inside(const Interval& interval, double delta) {
    return -delta < interval.lo && interval.hi < delta;
}

bool excludes_zero(const Interval& interval) {
    return interval.lo > 0.0 || interval.hi < 0.0;
}

bool is_finite(const Interval& interval) {
    return std::isfinite(interval.d) && std::isfinite(interval.lo) && std::isfinite(interval.hi);
}

VerdictKind kind_of(const Interval& interval, double delta) {
    if (is_inside(interval, delta)) return VerdictKind::same;
    if (interval.lo > 0.0) return VerdictKind::faster;
    if (interval.hi < 0.0) return VerdictKind::slower;
    return VerdictKind::undecided;
}

Interval widened(Interval interval, double by) {
    interval.lo -= by;
    interval.hi += by;
    return interval;
}

void add(Verdict& verdict, const std::string& code, const std::string& sentence) {
    verdict.reasons.push_back(code + ": " + sentence);
}

// What a new session would need to get an interval narrower than +-half_width.
std::string remedy(double half_width, double sd, double confidence, const Evidence& evidence) {
    const std::optional<int> replicates = replicates_for(half_width, sd, confidence);
    if (!replicates) return "more than 3000 replicates would be needed at this scatter; find its cause, or accept a larger margin";
    std::string text = "a new session of about " + std::to_string(*replicates) + " replicates should decide";
    if (evidence.seconds_per_replicate) {
        text += ", in about " + rounded_like("0", *evidence.seconds_per_replicate * static_cast<double>(*replicates)) + " s";
    }
    return text;
}

// Everything that makes the times themselves worthless; true if something did.
bool find_invalid(const Plan& plan, const Evidence& evidence, Verdict& verdict) {
    const Estimate& estimate = verdict.estimate;
    const std::size_t before = verdict.reasons.size();
    if (evidence.aborted) add(verdict, "ABORTED", evidence.abort_text.empty() ? "the session did not finish" : evidence.abort_text);
    if (!evidence.outputs_equal) add(verdict, "OUTPUT", evidence.output_text);
    if (evidence.outputs_vacuous) add(verdict, "VACUOUS", evidence.vacuous_text);
    for (const Finding& guard : evidence.failed_guards) add(verdict, guard.code, text_of(guard));
    const int finished = estimate.candidate.replicates;
    if (!is_look(plan, finished)) {
        add(verdict, "INCOMPLETE",
            std::to_string(finished) + " of " + std::to_string(plan.replicates) + " planned replicates are complete");
    }
    if (!is_finite(estimate.candidate) || !is_finite(estimate.control)) add(verdict, "NOT_FINITE", "an estimate is not a finite number");
    return verdict.reasons.size() > before;
}

// Judges the control. Returns how far the candidate's interval has to be widened, or nothing if the control settled the verdict.
std::optional<double> judge_control(const Evidence& evidence, Verdict& verdict) {
    const Interval& control = verdict.estimate.control;
    if (is_inside(control, verdict.delta)) {
        if (!excludes_zero(control)) return 0.0;
        add(verdict, "CONTROL_BIAS",
            "base and its byte copy differ by " + percent(control.d) + " " + bounds(control) + "; the candidate's interval, before " +
                bounds(verdict.estimate.candidate) + ", is widened by that");
        return std::abs(control.d);
    }
    if (!excludes_zero(control)) {
        // Nothing is wrong, nothing is known: in simulated sessions of identical arms with a margin below their scatter the centre lay
        // outside in most, and that says no more about the sitting than a wide interval around 0 does.
        const double centre = std::abs(control.d);
        const double room = centre < verdict.delta ? verdict.delta - centre : verdict.delta / 2.0;
        verdict.kind = VerdictKind::undecided;
        add(verdict, "CONTROL_IMPRECISE",
            "base against its byte copy is known only to " + bounds(control) + "; " +
                remedy(room, control.sd, control.confidence, evidence));
    } else {
        verdict.kind = VerdictKind::invalid;
        add(verdict, "CONTROL",
            "base and its byte copy differ by " + percent(control.d) + " " + bounds(control) +
                ", which is not inside the margin; this sitting cannot tell such builds apart");
    }
    return std::nullopt;
}

void explain(const Evidence& evidence, double bias, Verdict& verdict) {
    const Interval& candidate = verdict.estimate.candidate;
    if (verdict.kind == VerdictKind::same && excludes_zero(candidate)) {
        add(verdict, "RESOLVED",
            "a difference of " + percent(candidate.d) + " " + bounds(candidate) + " is resolved, and is inside the margin");
    }
    if (verdict.kind == VerdictKind::undecided) {
        // Either answer would do: a width that fits between the centre and the margin, or between the centre and 0.
        const double distance = std::max(verdict.delta - std::abs(candidate.d), std::abs(candidate.d)) - bias;
        add(verdict, "WIDTH",
            "the interval " + bounds(candidate) + " holds 0 and reaches the margin; " +
                remedy(distance, candidate.sd, candidate.confidence, evidence));
    }
}

// A single stall in one arm moves a mean or a 99th percentile by more than any margin, so a disagreement counts only where the
// replicates agree on it: where its whole interval lies beyond the margin. A gain that the slow tokens show too, if smaller (what
// stalls add is the same in both arms), stays a gain.
void apply_tail(Verdict& verdict) {
    const Estimate& estimate = verdict.estimate;
    bool contradicted = false;
    const auto look = [&](const char* name, const Interval& difference, const Interval& tail) {
        if (!(difference.lo > verdict.delta || difference.hi < -verdict.delta)) return;
        const bool same_answer = verdict.kind == VerdictKind::faster && tail.lo > 0.0;
        contradicted = contradicted || !same_answer;
        add(verdict, "TAIL",
            std::string("the ratio of ") + name + " says " + percent(tail.d) + " " + bounds(tail) + ", the robust ratio " +
                percent(estimate.candidate.d) +
                (same_answer ? "; both say the candidate is faster"
                             : ": rare slow tokens weigh differently in the two arms; find their cause"));
    };
    look("mean times", estimate.mean_minus_robust, estimate.mean_based);
    look("99th percentiles", estimate.p99_minus_robust, estimate.p99_based);
    const bool passes = verdict.kind == VerdictKind::same || verdict.kind == VerdictKind::faster;
    if (contradicted && passes) verdict.kind = VerdictKind::undecided;
}

void apply_doubts(const Evidence& evidence, double bias, Verdict& verdict) {
    const VerdictKind before = verdict.kind;
    for (const Finding& doubt : evidence.doubts) {
        add(verdict, doubt.code, text_of(doubt));
        verdict.kind = VerdictKind::undecided;
    }
    if (!evidence.without_flagged) return;
    const Interval without = widened(evidence.without_flagged->candidate, bias);
    const VerdictKind kind = has_interval(without) ? kind_of(without, verdict.delta) : VerdictKind::undecided;
    if (kind == kind_of(verdict.estimate.candidate, verdict.delta) || before == VerdictKind::undecided) return;
    add(verdict, "SENSITIVITY", "without the flagged rounds the answer would be " + std::string(name_of(kind)) + " " + bounds(without));
    verdict.kind = VerdictKind::undecided;
}

void judge_times(const Evidence& evidence, Verdict& verdict) {
    const std::optional<double> bias = judge_control(evidence, verdict);
    if (!bias) return;
    verdict.estimate.candidate = widened(verdict.estimate.candidate, *bias);
    verdict.kind = kind_of(verdict.estimate.candidate, verdict.delta);
    explain(evidence, *bias, verdict);
    apply_tail(verdict);
    apply_doubts(evidence, *bias, verdict);
}

}  // namespace

Verdict judge(const Plan& plan, const Estimate& estimate, const Evidence& evidence) {
    Verdict verdict;
    verdict.margin = plan.margin;
    verdict.delta = std::log1p(plan.margin);
    verdict.estimate = estimate;
    if (find_invalid(plan, evidence, verdict)) {
        verdict.kind = VerdictKind::invalid;
    } else if (!has_interval(estimate.candidate)) {
        verdict.kind = VerdictKind::undecided;
        add(verdict, "PLACEMENT",
            "one replicate is one placement of code and data: its result is conditional on placement and gets no verdict");
    } else {
        judge_times(evidence, verdict);
    }
    for (const Finding& warning : evidence.warnings) add(verdict, warning.code, text_of(warning));
    return verdict;
}

bool may_stop(const Plan& plan, const Verdict& verdict) {
    if (verdict.estimate.candidate.replicates >= plan.replicates) return true;
    if (verdict.kind == VerdictKind::undecided) return false;
    const bool by_control = std::any_of(verdict.reasons.begin(), verdict.reasons.end(),
                                        [](const std::string& reason) { return reason.rfind("CONTROL: ", 0) == 0; });
    return verdict.kind != VerdictKind::invalid || !by_control ||
           kind_of(verdict.estimate.candidate, verdict.delta) != VerdictKind::undecided;
}

ExitCode exit_code_of(VerdictKind kind) {
    switch (kind) {
        case VerdictKind::faster:
        case VerdictKind::same:
            return ExitCode::pass;
        case VerdictKind::slower:
            return ExitCode::failed;
        case VerdictKind::undecided:
            return ExitCode::undecided;
        case VerdictKind::invalid:
            break;
    }
    return ExitCode::invalid;
}

}  // namespace kestrel
