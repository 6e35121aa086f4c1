#include "runner/stats/assess.hpp"

#include <utility>

#include "runner/stats/estimate.hpp"
#include "runner/stats/guards.hpp"

namespace kestrel {

Assessment assess(const Plan& plan, const std::vector<Window>& windows, Evidence evidence) {
    const Estimate result = estimate(plan, windows);
    GuardFindings findings = check_times(plan, windows, result);
    for (Finding& doubt : findings.doubts) evidence.doubts.push_back(std::move(doubt));
    for (Finding& warning : findings.warnings) evidence.warnings.push_back(std::move(warning));
    Assessment assessment;
    assessment.verdict = judge(plan, result, evidence);
    assessment.may_stop = may_stop(plan, assessment.verdict);
    return assessment;
}

}  // namespace kestrel
