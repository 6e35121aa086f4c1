// run: measure, or say how one would.
#include <algorithm>

#include "reports/diff.hpp"
#include "reports/plan_text.hpp"
#include "runner/main/commands.hpp"
#include "runner/main/desk.hpp"
#include "runner/main/paths.hpp"
#include "runner/main/print.hpp"
#include "runner/platform/process.hpp"
#include "runner/stats/verdict.hpp"

namespace kestrel::cli {
namespace {

ExitCode say_identical(const CommonOptions& common, const session::RunRequest& request, const session::Preparation& preparation) {
    const DiffSide base{request.base_library, preparation.base.sha256};
    const DiffSide candidate{request.candidate_library, preparation.candidate.sha256};
    const std::vector<Place> places{preparation.place};
    print(
        common, [&] { return diff_text(base, candidate, places); }, [&] { return diff_json(base, candidate, places); });
    return ExitCode::pass;
}

// What the plan costs and what it can find: from earlier sessions of the same kind where there are any.
PlanOutlook outlook_of(Desk& desk, const session::RunRequest& request, const session::PlannedSession& planned) {
    const Plan& plan = planned.session.plan;
    PlanOutlook outlook;
    ExpectedSeconds expected = expected_seconds(plan, planned.cost);
    const std::vector<LedgerEntry> earlier = desk.earlier(planned.session, plan.super_rounds);
    outlook.earlier_sessions = static_cast<int>(earlier.size());
    double seconds = 0.0;
    int replicates = 0;
    const double context = context_seconds(plan, planned.cost);
    for (const LedgerEntry& entry : earlier) {
        seconds += std::max(entry.seconds - context, 0.0);
        replicates += entry.control.replicates;
    }
    if (replicates > 0) {
        const double one = seconds / replicates;
        const int first = plan.looks.empty() ? plan.replicates : plan.looks.front().replicates;
        expected = {context + one * first, context + one * plan.replicates};
    }
    outlook.seconds_to_first_look = expected.first_look;
    outlook.seconds_at_most = expected.maximum;
    if (plan.control_sd > 0.0) {
        outlook.smallest_effect = smallest_resolvable_effect(request.policy, plan.replicates, plan.control_sd);
        outlook.power_same = choose_length(request.policy, plan.margin, plan.control_sd).power_same;
    }
    for (const double sd : {0.0005, 0.002, 0.005, 0.01}) {
        outlook.by_scatter.emplace_back(sd, smallest_resolvable_effect(request.policy, plan.replicates, sd));
    }
    outlook.power = request.policy.power;
    return outlook;
}

}  // namespace

ExitCode command_run(const CommonOptions& common, const RunOptions& options) {
    const session::RunRequest request = request_for(common, options);
    const std::string database = database_path(common.database);
    platform::catch_termination();
    Desk desk(database);
    const session::Preparation preparation = desk.prepare(request);
    if (preparation.same_code && !request.measure_identical) return say_identical(common, request, preparation);
    if (options.plan_only) {
        const session::PlannedSession planned = desk.plan(request, preparation);
        const PlanOutlook outlook = outlook_of(desk, request, planned);
        print(
            common, [&] { return plan_text(planned.session, outlook); }, [&] { return plan_json(planned.session, outlook); });
        return ExitCode::pass;
    }
    const Session session = desk.run(request, preparation, common.json);
    print_session(common, session, database, options.all_rounds);
    return exit_code_of(session.verdict.value().kind);
}

}  // namespace kestrel::cli
