// How long a session has to be, and what it can be expected to find.
#pragma once

#include <optional>

#include "runner/plan/policy.hpp"
#include "runner/record/record.hpp"

namespace kestrel {

struct ChosenLength {
    int replicates = 0;         // the planned maximum
    bool is_enough = false;     // the power is expected to be reached; false also if the scatter is not known
    double power_same = 0.0;    // expected, of SAME if there is no effect; 0 if the scatter is not known
    double power_effect = 0.0;  // expected, of FASTER or SLOWER at effect_in_margins times the margin
};

// The smallest multiple of six that reaches the policy's power for both, never above the policy's maximum. `control_sd` is the
// standard deviation between replicates of ln(base / byte copy) in earlier sessions of this host, engine, model and mode; without it,
// the policy's maximum. The candidate is taken to scatter as the control does; the control must come out inside the margin too, and its
// chance of not doing so is subtracted (Bonferroni), so these are lower bounds. Throws Error{usage} unless 0 < margin <= 0.5 and
// control_sd is finite and not negative.
[[nodiscard]] ChosenLength choose_length(const Policy& policy, double margin, std::optional<double> control_sd);

// The smallest effect, as a relative difference, that a session of so many replicates finds (interval above 0) with the policy's
// power. Bisection to 1e-3 of the result.
[[nodiscard]] double smallest_resolvable_effect(const Policy& policy, int replicates, double control_sd);

// What one replicate costs: everything beside decoding, and the mean time of a token over the three arms.
struct ReplicateCost {
    double fixed_seconds = 0.0;  // start, load, warm-up
    double ms_per_token = 0.0;
};

struct ExpectedSeconds {
    double first_look = 0.0;
    double maximum = 0.0;
};

// The context of plan.position tokens, which base and candidate decode once each at the session's beginning.
[[nodiscard]] double context_seconds(const Plan& plan, const ReplicateCost& cost);

// The context once; then replicates. Each window has one untimed token, and restoring the context's state is within fixed_seconds; each
// super-round is led in by one window more.
[[nodiscard]] ExpectedSeconds expected_seconds(const Plan& plan, const ReplicateCost& cost);

}  // namespace kestrel
