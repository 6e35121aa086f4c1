// Where a growing session stands among its planned looks (runner/plan/boundaries.hpp explains them).
#pragma once

#include "runner/record/record.hpp"

namespace kestrel {

// The confidence of the candidate's interval after `replicates` complete replicates: that of the look there; between looks
// that of the look before, before the first look that of the first; plan.confidence if the plan has no looks.
[[nodiscard]] double confidence_at(const Plan& plan, int replicates);

// True if a session with so many complete replicates has reached one of its planned looks.
[[nodiscard]] bool is_look(const Plan& plan, int replicates);

}  // namespace kestrel
