// A plan before it is run.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

// What can be said about a planned session before it runs; probabilities 0 to 1, effects relative.
struct PlanOutlook {
    double seconds_to_first_look = 0.0;
    double seconds_at_most = 0.0;
    int earlier_sessions = 0;  // of this workload, host, device and engine, from which duration and scatter are known; 0: a guess from
                               // the inspection
    double power = 0.9;        // that the policy asks for
    std::optional<double> smallest_effect;              // found with that power at the known scatter
    double power_same = 0.0;                            // of SAME for identical builds; 0 if the scatter is not known
    std::vector<std::pair<double, double>> by_scatter;  // standard deviation between replicates, smallest effect
};

[[nodiscard]] std::string plan_text(const Session& planned, const PlanOutlook& outlook);

// {"format": 1, "kind": "plan", "plan": ..., "workload": ..., "place": ..., "outlook": ...}
[[nodiscard]] nlohmann::json plan_json(const Session& planned, const PlanOutlook& outlook);

}  // namespace kestrel
