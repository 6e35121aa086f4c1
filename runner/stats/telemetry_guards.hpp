// Guards over what machine and device said between the rounds. Pure functions; none of them looks at which arm was timed.
//
// The schedule gives every arm its equal share of a disturbance, and a candidate that draws more power and is throttled for it *is* slower,
// so most guards warn, and the verdict uses all rounds. But a disturbance that hit some rounds only is no part of the question: those
// rounds are flagged, and a verdict that does not hold without them is UNDECIDED (SENSITIVITY, verdict.hpp). Flagged is what differs from
// the session's own typical round by more than a limit, or where a cause was active; what most rounds share is a condition of the session
// and flags none of them: there would be no undisturbed rounds to compare with, and the interval shows its effect.
//
//   LOAD         others used the CPUs                              warning, flags super-rounds
//   STEAL        the host of a virtual machine ran something else  warning, flags super-rounds
//   PRESSURE     tasks waited for a CPU                            warning, flags rounds
//   FREQUENCY    CPUs ran at another frequency than usual          warning, flags rounds
//   THROTTLED    a CPU or the GPU was throttled                    warning, flags rounds
//   CLOCKS       the GPU's SM or memory clock differed             warning, flags rounds
//   TEMPERATURE  the GPU was still warming up at the end           warning: drift within a replicate cancels, and guards.hpp watches the
//                                                                  trend over replicates
//   PROCESSES    another process had a context on the GPU          warning, flags rounds with more of them than usual. It may be idle
//                                                                  (a display, a notebook), which NVML does not tell, so its presence
//                                                                  alone does not make times worthless
//   ECC          an uncorrectable memory error occurred            failed guard: memory held something else than was written
//                a corrected one                                   warning: the data is right, the memory is about to fail
//   NOT_CHECKED  sources that told nothing                         warning
#pragma once

#include <set>
#include <vector>

#include "runner/record/record.hpp"
#include "runner/stats/estimate.hpp"
#include "runner/stats/finding.hpp"
#include "runner/stats/verdict.hpp"

namespace kestrel {

// Others may use this much of a core: more than an idle system needs.
inline constexpr double load_limit_cores = 0.1;
// Stolen from all CPUs together. An engine's threads wait for each other after every operator, so one stolen core stalls all of them: 2 %
// of a core is up to 2 % of the time, the size of the margins that are asked for.
inline constexpr double steal_limit_cores = 0.02;
// Share of the time in which a task waited. Wake-ups cost tens of microseconds in a round of 50 ms or more, well below 1 %.
inline constexpr double pressure_limit = 0.05;
// Relative difference from the session's median. CPUs move in steps of 25 to 100 MHz, 1 to 3 % of 3 GHz, all the time.
inline constexpr double frequency_limit = 0.05;
// A GPU's SM clock moves in steps of 15 MHz, 0.8 % of 1980 MHz: two of them are let pass. Its memory clock does not move within a state.
inline constexpr double sm_clock_limit = 0.02;
inline constexpr double memory_clock_limit = 0.01;
// The sensor tells whole degrees, so one is no difference.
inline constexpr double temperature_limit_c = 2.0;

struct TelemetryFindings {
    std::vector<Finding> failed_guards;
    std::vector<Finding> warnings;
    std::set<RoundKey> flagged;
};

// `uses_gpu`: the session's device is one, so that its silence is told. Only rounds that have windows are looked at.
[[nodiscard]] TelemetryFindings check_telemetry(const Plan& plan, const std::vector<Window>& windows, const std::vector<Reading>& readings,
                                                bool uses_gpu);

// Adds the findings to `evidence`, and what the estimate is without the flagged rounds if there are any.
void add_telemetry(Evidence& evidence, const Plan& plan, const std::vector<Window>& windows, const std::vector<Reading>& readings,
                   bool uses_gpu);

}  // namespace kestrel
