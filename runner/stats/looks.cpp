#include "runner/stats/looks.hpp"

#include <algorithm>

namespace kestrel {

double confidence_at(const Plan& plan, int replicates) {
    if (plan.looks.empty()) return plan.confidence;
    double confidence = plan.looks.front().confidence;
    for (const Look& look : plan.looks) {
        if (look.replicates <= replicates) confidence = look.confidence;
    }
    return confidence;
}

bool is_look(const Plan& plan, int replicates) {
    if (plan.looks.empty()) return replicates > 0 && replicates >= plan.replicates;
    return std::any_of(plan.looks.begin(), plan.looks.end(), [replicates](const Look& look) { return look.replicates == replicates; });
}

}  // namespace kestrel
