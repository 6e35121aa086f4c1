// From windows to verdict in one step: what a session does at each of its looks, and what the simulation runs.
#pragma once

#include <vector>

#include "runner/stats/verdict.hpp"

namespace kestrel {

struct Assessment {
    Verdict verdict;        // with the estimate
    bool may_stop = false;  // verdict.hpp
};

// Estimates, asks the guards over the times (their findings are added to `evidence`) and judges. Throws as estimate() does.
[[nodiscard]] Assessment assess(const Plan& plan, const std::vector<Window>& windows, Evidence evidence);

}  // namespace kestrel
