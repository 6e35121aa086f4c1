// What a session may be expected to find, before it runs.
#pragma once

#include "runner/record/record.hpp"

namespace kestrel {

// One fixed look at the end of a session: K replicates whose contrasts scatter normally with standard deviation `sd` around `effect`
// (both on the log scale), an interval of that confidence, and a margin delta = ln(1 + margin). Earlier looks only add to these.
struct Prospect {
    double effect = 0.0;
    double sd = 0.0;
    double delta = 0.0;
    int replicates = 6;  // >= 2
    double confidence = 0.95;
};

// The probability that the interval lies wholly inside +-delta. Scatter of the estimated standard deviation included: the normal
// probability is averaged over the chi-squared distribution of the variance (256 equally likely values, good to about 0.001).
[[nodiscard]] double probability_inside_margin(const Prospect& prospect);

// The probability that the interval lies above 0 (effect > 0: FASTER, or SAME with a resolved difference).
[[nodiscard]] double probability_above_zero(const Prospect& prospect);

}  // namespace kestrel
