#include "reports/plan_text.hpp"

#include "reports/format.hpp"
#include "reports/layout.hpp"
#include "reports/place_text.hpp"
#include "runner/record/json.hpp"

namespace kestrel {
namespace {

std::string looks_text(const Plan& plan) {
    if (plan.looks.empty()) return "one, after " + count_text(plan.replicates, "replicate");
    std::string text;
    for (const Look& look : plan.looks) {
        text += (text.empty() ? "after " : ", ") + std::to_string(look.replicates) + " (" + fixed_text(100.0 * look.confidence, 4) + " %)";
    }
    return text + " replicates, with the interval's confidence at each; over all of them " + confidence_text(plan.confidence);
}

std::string find_text(const PlanOutlook& outlook) {
    const std::string with_power = " with a probability of " + percent_text(100.0 * outlook.power, 0);
    if (outlook.smallest_effect) {
        return percent_text(100.0 * *outlook.smallest_effect, 3) + " or more" + with_power + "; identical builds come out SAME in " +
               percent_text(100.0 * outlook.power_same, 0) + " of sessions";
    }
    std::string text = "no earlier session of this kind tells how much replicates scatter here;" + with_power;
    for (const auto& [sd, effect] : outlook.by_scatter) {
        text += (sd == outlook.by_scatter.front().first ? " " : ", ") + percent_text(100.0 * effect, 3) + " at a scatter of " +
                percent_text(100.0 * sd, 2);
    }
    return text;
}

}  // namespace

std::string plan_text(const Session& planned, const PlanOutlook& outlook) {
    const Plan& plan = planned.plan;
    std::string text = "Plan; nothing was measured\n";
    text += field("experiment", plan.experiment + ", version " + std::to_string(plan.experiment_version));
    text += field("device", planned.device);
    text += field("model", planned.workload.model_name);
    text += field("one place", place_text(planned.place));
    text += field("policy", plan.policy.empty() ? "none" : plan.policy);
    text += field("margin", percent_text(100.0 * plan.margin, 2) + ", outputs " + plan.output_rule);
    text += field("replicates", "at most " + std::to_string(plan.replicates) + ", of " + count_text(plan.super_rounds, "super-round") +
                                    " of 6 rounds; " + count_text(plan.tokens, "timed token") + " per window");
    text += field("looks", looks_text(plan));
    text += field("duration", duration_text(outlook.seconds_to_first_look) + " to the first look, at most " +
                                  duration_text(outlook.seconds_at_most) +
                                  (outlook.earlier_sessions > 0 ? ", as in " + count_text(outlook.earlier_sessions, "earlier session")
                                                                : ", guessed from the inspection"));
    if (plan.control_sd > 0.0)
        text += field("scatter", percent_text(100.0 * plan.control_sd, 3) + " between replicates of earlier controls");
    text += field("can find", find_text(outlook));
    text += field("seed", std::to_string(plan.seed));
    return text + field("plan hash", plan.sha256);
}

nlohmann::json plan_json(const Session& planned, const PlanOutlook& outlook) {
    nlohmann::json by_scatter = nlohmann::json::array();
    for (const auto& [sd, effect] : outlook.by_scatter) by_scatter.push_back({{"sd", sd}, {"smallest_effect", effect}});
    nlohmann::json smallest = nullptr;
    if (outlook.smallest_effect) smallest = *outlook.smallest_effect;
    return {{"format", 1},
            {"kind", "plan"},
            {"plan", planned.plan},
            {"workload", planned.workload},
            {"place", planned.place},
            {"outlook",
             {{"seconds_to_first_look", outlook.seconds_to_first_look},
              {"seconds_at_most", outlook.seconds_at_most},
              {"earlier_sessions", outlook.earlier_sessions},
              {"power", outlook.power},
              {"smallest_effect", smallest},
              {"power_same", outlook.power_same},
              {"by_scatter", by_scatter}}}};
}

}  // namespace kestrel
