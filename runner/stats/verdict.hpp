// The rule that turns an estimate into a verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/record/error.hpp"
#include "runner/record/record.hpp"
#include "runner/stats/finding.hpp"

namespace kestrel {

// What is known about the session beside its times. The defaults are the pessimistic ones: whoever judges must say that the
// outputs were compared.
struct Evidence {
    bool outputs_equal = false;  // by the plan's output rule, all arms, all rounds and the final states
    std::string output_text = "the outputs of the arms were not compared";
    bool outputs_vacuous = true;  // not finite, or the same token throughout
    std::string vacuous_text = "the outputs were not checked for being finite and varied";
    bool aborted = false;
    std::string abort_text;
    std::vector<Finding> failed_guards;           // each makes the session INVALID
    std::vector<Finding> doubts;                  // each makes FASTER, SLOWER and SAME impossible, e.g. two modes among the replicates
    std::vector<Finding> warnings;                // told, nothing more
    std::optional<Estimate> without_flagged;      // sensitivity: without the rounds in which a guard saw something
    std::optional<double> seconds_per_replicate;  // for the time that a verdict would still take
};

// d = ln(base / candidate), > 0 if the candidate is faster; delta = ln(1 + margin). First match wins:
//   INVALID    aborted; outputs differ (OUTPUT) or are vacuous (VACUOUS); a failed guard; as many replicates as no look has (INCOMPLETE);
//              the control's interval excludes 0 and is not wholly inside +-delta (CONTROL)
//   UNDECIDED  one replicate (PLACEMENT); the control's interval holds 0 but is not wholly inside +-delta (CONTROL_IMPRECISE)
//   SAME       -delta < lo and hi < delta; a difference that is resolved all the same is a reason (RESOLVED)
//   FASTER     lo > 0
//   SLOWER     hi < 0
//   UNDECIDED  otherwise, with the replicates and time that a verdict is expected to take (WIDTH)
// A control inside +-delta that excludes 0 (CONTROL_BIAS) widens [lo, hi] by |d of the control| first; the verdict's estimate holds
// the widened bounds. Then, at best UNDECIDED: mean-based or p99 ratio further than delta from the robust one with its whole interval
// (TAIL; SLOWER stays, and so does FASTER where that ratio is resolved as faster too). UNDECIDED instead of any of the three: a doubt, or
// another answer without the flagged rounds (SENSITIVITY).
[[nodiscard]] Verdict judge(const Plan& plan, const Estimate& estimate, const Evidence& evidence);

// Whether the session may end at the look that gave this verdict: at the last one, or if the candidate's repeated interval decides
// and nothing casts doubt on it. The control is judged once, where the candidate is decided: CONTROL ends a session only there.
// What no further replicate can mend (OUTPUT, a failed guard, ...) ends it at any look.
[[nodiscard]] bool may_stop(const Plan& plan, const Verdict& verdict);

// FASTER and SAME pass, SLOWER failed, UNDECIDED undecided, INVALID invalid.
[[nodiscard]] ExitCode exit_code_of(VerdictKind kind);

}  // namespace kestrel
