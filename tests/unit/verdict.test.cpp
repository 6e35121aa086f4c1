#include "runner/stats/verdict.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "runner/record/names.hpp"

using namespace kestrel;

namespace {

const double delta = std::log1p(0.01);

Plan six_replicates() {
    Plan plan;
    plan.replicates = 6;
    plan.margin = 0.01;
    return plan;
}

Evidence clean() {
    Evidence evidence;
    evidence.outputs_equal = true;
    evidence.outputs_vacuous = false;
    return evidence;
}

Interval interval(double lo, double hi, double confidence = 0.95) {
    Interval result;
    result.lo = lo;
    result.hi = hi;
    result.d = (lo + hi) / 2.0;
    result.sd = (hi - lo) / 2.0 / 2.570582 * std::sqrt(6.0);
    result.confidence = confidence;
    result.replicates = 6;
    return result;
}

Estimate estimate_of(double lo, double hi, double control_lo = -0.001, double control_hi = 0.001) {
    Estimate result;
    result.candidate = interval(lo, hi);
    result.control = interval(control_lo, control_hi, 0.99);
    result.mean_ratio = std::exp(result.candidate.d);
    result.p99_ratio = result.mean_ratio;
    return result;
}

bool has_reason(const Verdict& verdict, const std::string& code) {
    for (const std::string& reason : verdict.reasons) {
        if (reason.rfind(code + ": ", 0) == 0) return true;
    }
    return false;
}

Verdict judged(double lo, double hi, const Evidence& evidence = clean()) {
    return judge(six_replicates(), estimate_of(lo, hi), evidence);
}

}  // namespace

TEST_CASE("judge: every relation of [lo, hi] to -delta, 0 and delta") {
    struct Row {
        double lo, hi;
        VerdictKind kind;
        bool resolved;
    };
    const double tiny = 1e-9;
    const std::vector<Row> rows{
        {-3 * delta, -2 * delta, VerdictKind::slower, false},
        {-2 * delta, -delta, VerdictKind::slower, false},
        {-2 * delta, -delta / 2, VerdictKind::slower, false},
        {-2 * delta, -tiny, VerdictKind::slower, false},
        {-2 * delta, 0.0, VerdictKind::undecided, false},
        {-2 * delta, delta / 2, VerdictKind::undecided, false},
        {-2 * delta, delta, VerdictKind::undecided, false},
        {-2 * delta, 2 * delta, VerdictKind::undecided, false},
        {-delta, -delta / 2, VerdictKind::slower, false},  // lo = -delta is not inside
        {-delta, 0.0, VerdictKind::undecided, false},
        {-delta, delta / 2, VerdictKind::undecided, false},
        {-delta + tiny, -delta / 2, VerdictKind::same, true},
        {-delta / 2, -tiny, VerdictKind::same, true},
        {-delta / 2, 0.0, VerdictKind::same, false},
        {-delta / 2, delta / 2, VerdictKind::same, false},
        {-delta + tiny, delta - tiny, VerdictKind::same, false},
        {-delta / 2, delta, VerdictKind::undecided, false},  // hi = delta is not inside
        {-delta / 2, 2 * delta, VerdictKind::undecided, false},
        {0.0, 0.0, VerdictKind::same, false},
        {0.0, delta / 2, VerdictKind::same, false},
        {0.0, delta, VerdictKind::undecided, false},
        {0.0, 2 * delta, VerdictKind::undecided, false},
        {tiny, delta / 2, VerdictKind::same, true},
        {tiny, delta, VerdictKind::faster, false},
        {tiny, 2 * delta, VerdictKind::faster, false},
        {delta / 2, 2 * delta, VerdictKind::faster, false},
        {delta, 2 * delta, VerdictKind::faster, false},
        {2 * delta, 3 * delta, VerdictKind::faster, false},
    };
    for (const Row& row : rows) {
        INFO("[" << row.lo << ", " << row.hi << "]");
        const Verdict verdict = judged(row.lo, row.hi);
        CHECK(name_of(verdict.kind) == name_of(row.kind));
        CHECK(has_reason(verdict, "RESOLVED") == row.resolved);
        CHECK(has_reason(verdict, "WIDTH") == (row.kind == VerdictKind::undecided));
        CHECK(verdict.delta == delta);
        // The promise behind exit code 0.
        if (exit_code_of(verdict.kind) == ExitCode::pass) CHECK(verdict.estimate.candidate.lo > -delta);
    }
}

TEST_CASE("judge: every relation of the control to -delta, 0 and delta") {
    struct Row {
        double lo, hi;
        VerdictKind kind;
        const char* reason;
    };
    const std::vector<Row> rows{
        {-0.002, 0.002, VerdictKind::faster, ""},
        {0.0, 0.002, VerdictKind::faster, ""},
        {0.001, 0.003, VerdictKind::faster, "CONTROL_BIAS"},
        {-0.003, -0.001, VerdictKind::faster, "CONTROL_BIAS"},
        {-2 * delta, 2 * delta, VerdictKind::undecided, "CONTROL_IMPRECISE"},
        {-delta / 2, delta, VerdictKind::undecided, "CONTROL_IMPRECISE"},
        {-delta, delta / 2, VerdictKind::undecided, "CONTROL_IMPRECISE"},
        {0.001, delta, VerdictKind::invalid, "CONTROL"},  // resolved, and perhaps as large as the margin
        {-2 * delta, -0.001, VerdictKind::invalid, "CONTROL"},
        {-0.001, 2.5 * delta, VerdictKind::undecided, "CONTROL_IMPRECISE"},  // centre outside, but 0 is inside
        {-2.5 * delta, 0.0, VerdictKind::undecided, "CONTROL_IMPRECISE"},
        {1e-9, 2.5 * delta, VerdictKind::invalid, "CONTROL"},
        {2 * delta, 3 * delta, VerdictKind::invalid, "CONTROL"},
        {-3 * delta, -2 * delta, VerdictKind::invalid, "CONTROL"},
    };
    for (const Row& row : rows) {
        INFO("control [" << row.lo << ", " << row.hi << "]");
        const Verdict verdict = judge(six_replicates(), estimate_of(0.05, 0.06, row.lo, row.hi), clean());
        CHECK(name_of(verdict.kind) == name_of(row.kind));
        for (const char* code : {"CONTROL", "CONTROL_BIAS", "CONTROL_IMPRECISE"})
            CHECK(has_reason(verdict, code) == (code == std::string(row.reason)));
    }
}

TEST_CASE("judge: a biased control widens the candidate's interval by its size") {
    const Estimate estimate = estimate_of(0.001, 0.012, 0.001, 0.003);
    const Verdict verdict = judge(six_replicates(), estimate, clean());
    CHECK(verdict.estimate.candidate.lo == Approx(-0.001));
    CHECK(verdict.estimate.candidate.hi == Approx(0.014));
    CHECK(verdict.estimate.candidate.d == Approx(0.0065));
    CHECK(name_of(verdict.kind) == "UNDECIDED");  // FASTER without the bias
    CHECK(name_of(judged(0.001, 0.012).kind) == "FASTER");
    CHECK(name_of(judge(six_replicates(), estimate_of(-0.0085, 0.0, -0.003, -0.001), clean()).kind) == "UNDECIDED");  // SAME without
    CHECK(name_of(judged(-0.0085, 0.0).kind) == "SAME");
}

TEST_CASE("judge: whatever makes the times worthless comes before every other rule") {
    using Change = void (*)(Evidence&);
    const std::vector<std::pair<Change, const char*>> cases{
        {[](Evidence& e) {
             e.aborted = true;
             e.abort_text = "signal 11";
         },
         "ABORTED"},
        {[](Evidence& e) {
             e.outputs_equal = false;
             e.output_text = "round 3 differs";
         },
         "OUTPUT"},
        {[](Evidence& e) { e.outputs_vacuous = true; }, "VACUOUS"},
        {[](Evidence& e) {
             e.failed_guards.push_back({"REHASH", "an artifact changed"});
         },
         "REHASH"},
    };
    for (const auto& [change, code] : cases) {
        for (const double centre : {-0.05, 0.0, 0.05}) {
            Evidence evidence = clean();
            change(evidence);
            const Verdict verdict = judged(centre - 0.001, centre + 0.001, evidence);
            CHECK(name_of(verdict.kind) == "INVALID");
            CHECK(has_reason(verdict, code));
            CHECK(verdict.reasons.size() == 1);
        }
    }
    Evidence all = clean();
    for (const auto& [change, code] : cases) change(all);
    const Verdict verdict = judged(0.05, 0.06, all);
    for (const auto& [change, code] : cases) CHECK(has_reason(verdict, code));
    CHECK(name_of(judge(six_replicates(), estimate_of(0.05, 0.06), Evidence{}).kind) == "INVALID");  // nobody compared the outputs
}

TEST_CASE("judge: missing replicates and numbers that are none are INVALID") {
    Plan plan = six_replicates();
    plan.replicates = 7;
    CHECK(has_reason(judge(plan, estimate_of(0.05, 0.06), clean()), "INCOMPLETE"));
    CHECK(name_of(judge(plan, estimate_of(0.05, 0.06), clean()).kind) == "INVALID");
    CHECK(name_of(judge(six_replicates(), Estimate{}, clean()).kind) == "INVALID");
    Estimate broken = estimate_of(0.05, 0.06);
    broken.candidate.hi = std::numeric_limits<double>::quiet_NaN();
    CHECK(has_reason(judge(six_replicates(), broken, clean()), "NOT_FINITE"));
    broken = estimate_of(0.05, 0.06);
    broken.control.d = std::numeric_limits<double>::infinity();
    CHECK(name_of(judge(six_replicates(), broken, clean()).kind) == "INVALID");
}

TEST_CASE("judge: one replicate never gets a verdict on its times") {
    Plan plan = six_replicates();
    plan.replicates = 1;
    for (const double centre : {-0.05, 0.0, 0.05}) {
        Estimate estimate = estimate_of(centre, centre, 0.0, 0.0);
        estimate.candidate.replicates = estimate.control.replicates = 1;
        const Verdict verdict = judge(plan, estimate, clean());
        CHECK(name_of(verdict.kind) == "UNDECIDED");
        REQUIRE(has_reason(verdict, "PLACEMENT"));
        CHECK_THAT(verdict.reasons.front(), Catch::Contains("conditional on placement"));
        Evidence different = clean();
        different.outputs_equal = false;
        CHECK(name_of(judge(plan, estimate, different).kind) == "INVALID");
    }
}

TEST_CASE("judge: a tail that disagrees allows UNDECIDED at best") {
    struct Row {
        double lo, hi;
        VerdictKind with_tail;
    };
    for (const Row& row : {Row{0.05, 0.06, VerdictKind::undecided}, Row{-0.001, 0.001, VerdictKind::undecided},
                           Row{-0.02, 0.02, VerdictKind::undecided}, Row{-0.06, -0.05, VerdictKind::slower}}) {
        for (const auto& [difference, tail] : {std::pair{&Estimate::mean_minus_robust, &Estimate::mean_based},
                                               std::pair{&Estimate::p99_minus_robust, &Estimate::p99_based}}) {
            for (const double sign : {-1.0, 1.0}) {
                Estimate estimate = estimate_of(row.lo, row.hi);
                estimate.*tail = interval(-0.002, 0.3);
                const auto judged_with = [&](double near, double far) {
                    estimate.*difference = sign > 0.0 ? interval(near, far) : interval(-far, -near);
                    return judge(six_replicates(), estimate, clean());
                };
                const Verdict verdict = judged_with(delta * 1.01, delta * 1.03);
                CHECK(name_of(verdict.kind) == name_of(row.with_tail));
                CHECK(has_reason(verdict, "TAIL"));
                // One stall in one arm: the centre is far out, but the replicates do not agree on it.
                CHECK_FALSE(has_reason(judged_with(delta * 0.99, delta * 50.0), "TAIL"));
            }
        }
    }
}

TEST_CASE("judge: a tail that shows a smaller gain leaves the gain") {
    Estimate estimate = estimate_of(0.05, 0.06);
    estimate.p99_minus_robust = interval(-0.04, -0.03);
    estimate.p99_based = interval(0.01, 0.03);
    const Verdict verdict = judge(six_replicates(), estimate, clean());
    CHECK(name_of(verdict.kind) == "FASTER");
    CHECK(has_reason(verdict, "TAIL"));
    estimate.p99_based = interval(-0.001, 0.03);
    CHECK(name_of(judge(six_replicates(), estimate, clean()).kind) == "UNDECIDED");
    // Inside the margin by the robust ratio, and by the slow tokens faster: neither answer describes the candidate.
    estimate = estimate_of(-0.001, 0.001);
    estimate.p99_minus_robust = estimate.p99_based = interval(0.03, 0.04);
    CHECK(name_of(judge(six_replicates(), estimate, clean()).kind) == "UNDECIDED");
}

TEST_CASE("judge: doubts and dependence on flagged rounds lead to UNDECIDED, warnings to nothing") {
    for (const double centre : {-0.05, 0.0, 0.05}) {
        Evidence evidence = clean();
        evidence.doubts.push_back({"BIMODAL", "two groups of replicates"});
        CHECK(name_of(judged(centre - 0.001, centre + 0.001, evidence).kind) == "UNDECIDED");

        evidence = clean();
        evidence.without_flagged = estimate_of(centre - 0.002, centre + 0.002);
        const VerdictKind kind = judged(centre - 0.001, centre + 0.001).kind;
        const Verdict unchanged = judged(centre - 0.001, centre + 0.001, evidence);
        CHECK(name_of(unchanged.kind) == name_of(kind));
        CHECK_FALSE(has_reason(unchanged, "SENSITIVITY"));
        evidence.without_flagged = estimate_of(centre - 0.07, centre + 0.07);
        const Verdict changed = judged(centre - 0.001, centre + 0.001, evidence);
        CHECK(name_of(changed.kind) == "UNDECIDED");
        CHECK(has_reason(changed, "SENSITIVITY"));

        evidence = clean();
        evidence.warnings.push_back({"DRIFT", "times fell by 2 %"});
        const Verdict warned = judged(centre - 0.001, centre + 0.001, evidence);
        CHECK(name_of(warned.kind) == name_of(kind));
        CHECK(has_reason(warned, "DRIFT"));
    }
    Evidence one_left = clean();
    one_left.without_flagged = estimate_of(0.05, 0.06);
    one_left.without_flagged->candidate.replicates = 1;
    CHECK(name_of(judged(0.05, 0.06, one_left).kind) == "UNDECIDED");
}

TEST_CASE("judge: UNDECIDED says what would decide") {
    Evidence evidence = clean();
    evidence.seconds_per_replicate = 2.5;
    const Verdict verdict = judged(-0.012, 0.012, evidence);
    REQUIRE(has_reason(verdict, "WIDTH"));
    // half width 0.012 at K = 6, so sd 0.01143; 12 replicates give 0.00727 < delta 0.00995
    CHECK_THAT(verdict.reasons.front(), Catch::Contains("about 12 replicates") && Catch::Contains("about 30 s"));
    CHECK_THAT(judged(-3.0, 3.0).reasons.front(), Catch::Contains("more than 3000"));
    CHECK_THAT(judged(-0.012, 0.012).reasons.front(), !Catch::Contains(" s\n") && Catch::Contains("should decide"));
}

TEST_CASE("exit_code_of: each verdict") {
    CHECK(exit_code_of(VerdictKind::faster) == ExitCode::pass);
    CHECK(exit_code_of(VerdictKind::same) == ExitCode::pass);
    CHECK(exit_code_of(VerdictKind::slower) == ExitCode::failed);
    CHECK(exit_code_of(VerdictKind::undecided) == ExitCode::undecided);
    CHECK(exit_code_of(VerdictKind::invalid) == ExitCode::invalid);
}
