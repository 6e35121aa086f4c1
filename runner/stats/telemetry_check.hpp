// Shared by the parts of the telemetry guards; telemetry_guards.hpp is for everybody else.
#pragma once

#include <string>
#include <vector>

#include "runner/stats/telemetry_guards.hpp"
#include "runner/stats/telemetry_summary.hpp"

namespace kestrel::telemetry_guards {

// The session as the guards see it, and what they found.
struct Check {
    std::vector<Interlude> rounds;      // measured rounds with a reading before them
    std::vector<const Reading*> after;  // the reading after each measured round
    TelemetryFindings found;
};

[[nodiscard]] inline RoundKey key_of(const Reading& reading) {
    return {reading.replicate, reading.super_round, reading.round};
}

// "3 of 24 rounds"
[[nodiscard]] inline std::string of(std::size_t count, std::size_t total) {
    return std::to_string(count) + " of " + std::to_string(total) + " rounds";
}

inline void warn(Check& check, const char* code, const std::string& sentence, const std::string& advice) {
    check.found.warnings.push_back({code, sentence, advice});
}

// Flags these rounds unless they are most of the `total`: then there is no undisturbed majority to compare with.
inline void flag(Check& check, const std::vector<RoundKey>& rounds, std::size_t total) {
    if (rounds.size() * 2 <= total) check.found.flagged.insert(rounds.begin(), rounds.end());
}

// CLOCKS, FREQUENCY: rounds after which `name` differed from its median by more than a relative limit.
struct Steady {
    const char* code;
    const char* what;
    const char* source;
    const char* name;
    double limit;
    const char* advice;
};
void check_steady(Check& check, const Steady& guard);

void check_cpu(Check& check);  // LOAD, STEAL, PRESSURE, FREQUENCY, THROTTLED
void check_gpu(Check& check);  // CLOCKS, THROTTLED, TEMPERATURE, PROCESSES
void check_ecc(Check& check, const std::vector<Reading>& readings);

}  // namespace kestrel::telemetry_guards
