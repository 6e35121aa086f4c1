#include "runner/stats/telemetry_guards.hpp"

#include <algorithm>
#include <utility>

#include "runner/stats/telemetry_check.hpp"

namespace kestrel {
namespace {

using namespace telemetry_guards;

void check_sources(Check& check, std::size_t measured, bool uses_gpu) {
    struct Source {
        const char* text;
        const char* source;
        const char* name;
    };
    std::vector<Source> sources{{"CPU load and steal", "cpu", "busy_s"},
                                {"CPU pressure", "pressure", "some_s"},
                                {"CPU frequency", "frequency", "mean_mhz"},
                                {"CPU throttling", "throttling", "count"}};
    if (uses_gpu) {
        const std::vector<Source> of_gpu{{"GPU clocks", "gpu", "sm_mhz"},
                                         {"GPU throttling", "gpu", "throttle_reasons"},
                                         {"GPU temperature", "gpu", "temperature_c"},
                                         {"GPU memory errors", "gpu", "ecc_uncorrected"},
                                         {"other processes on the GPU", "gpu", "other_processes"}};
        const bool silent =
            std::none_of(check.after.begin(), check.after.end(), [](const Reading* reading) { return reading->sources.contains("gpu"); });
        if (silent) sources.push_back({"GPU", "gpu", ""});
        if (!silent) sources.insert(sources.end(), of_gpu.begin(), of_gpu.end());
    }
    std::string list;
    for (const Source& one : sources) {
        const auto told = static_cast<std::size_t>(std::count_if(check.after.begin(), check.after.end(), [&one](const Reading* reading) {
            return value_of(*reading, one.source, one.name).has_value();
        }));
        if (told >= measured) continue;
        list += (list.empty() ? "" : ", ") + std::string(one.text);
        if (told > 0) list += " (after " + of(measured - told, measured) + ")";
    }
    if (!list.empty()) warn(check, "NOT_CHECKED", "no telemetry of " + list, "");
}

}  // namespace

TelemetryFindings check_telemetry(const Plan& plan, const std::vector<Window>& windows, const std::vector<Reading>& readings,
                                  bool uses_gpu) {
    std::set<RoundKey> measured;
    for (const Window& window : windows) {
        if (window.replicate < plan.replicates) measured.insert({window.replicate, window.super_round, window.round});
    }
    Check check;
    for (const Interlude& round : interludes(readings)) {
        if (measured.contains(key_of(*round.to))) check.rounds.push_back(round);
    }
    for (const Reading& reading : readings) {
        if (measured.contains(key_of(reading))) check.after.push_back(&reading);
    }
    check_cpu(check);
    check_gpu(check);
    check_ecc(check, readings);
    check_sources(check, measured.size(), uses_gpu);
    return std::move(check.found);
}

void add_telemetry(Evidence& evidence, const Plan& plan, const std::vector<Window>& windows, const std::vector<Reading>& readings,
                   bool uses_gpu) {
    TelemetryFindings found = check_telemetry(plan, windows, readings, uses_gpu);
    for (Finding& one : found.failed_guards) evidence.failed_guards.push_back(std::move(one));
    for (Finding& one : found.warnings) evidence.warnings.push_back(std::move(one));
    if (!found.flagged.empty()) evidence.without_flagged = estimate(plan, windows, found.flagged);
}

}  // namespace kestrel
