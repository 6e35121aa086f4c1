// What a session's readings say, in a few numbers. Pure functions of the readings; runner/telemetry/telemetry.hpp lists sources and values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

[[nodiscard]] std::optional<double> value_of(const Reading& reading, const std::string& source, const std::string& name);

// The time between two readings of one replicate, a round or more.
struct Interlude {
    const Reading* from = nullptr;
    const Reading* to = nullptr;
    [[nodiscard]] double seconds() const { return static_cast<double>(to->at_ns - from->at_ns) / 1e9; }
    // By how much a counter grew; nothing if it is absent at either end or shrank, which is to say, began anew.
    [[nodiscard]] std::optional<double> growth(const std::string& source, const std::string& name) const;
    // CPU time of whoever is neither the worker nor the runner, in seconds. Ticks make it uncertain (busy_ticks in
    // telemetry_guards.cpp), so it may be a little below 0.
    [[nodiscard]] std::optional<double> others_s() const;
};

// Each round with the reading before it in its replicate, in the order of measurement; rounds without one are left out. The pointers are
// into `readings`.
[[nodiscard]] std::vector<Interlude> interludes(const std::vector<Reading>& readings);

// Reasons for which a GPU's clock is lowered that are neither idleness nor a setting (bits of throttle_reasons, nvmlClocksEventReason*).
[[nodiscard]] std::vector<std::string> throttle_names(double reasons);

struct Range {
    double low = 0.0;
    double high = 0.0;
};

// Absent: not checked.
struct TelemetrySummary {
    std::size_t rounds = 0;              // with a reading
    std::optional<double> others_cores;  // mean over the rounds, as are the next two
    std::optional<double> steal_cores;
    std::optional<double> pressure;       // share of the time in which a task waited for a CPU
    std::optional<Range> frequency_mhz;   // after rounds, as are those of the GPU
    std::optional<double> cpu_throttles;  // how often in all
    std::optional<Range> sm_mhz;
    std::optional<Range> memory_mhz;
    std::optional<Range> temperature_c;
    std::optional<Range> power_w;
    std::optional<std::size_t> throttled_rounds;  // GPU
    std::optional<double> ecc_uncorrected;        // errors since the first reading
    std::optional<double> ecc_corrected;
    std::optional<Range> other_processes;
};

[[nodiscard]] TelemetrySummary summarise_telemetry(const std::vector<Reading>& readings);

}  // namespace kestrel
