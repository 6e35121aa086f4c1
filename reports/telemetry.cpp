#include "reports/telemetry.hpp"

#include "reports/format.hpp"
#include "reports/layout.hpp"
#include "runner/record/names.hpp"
#include "runner/stats/telemetry_summary.hpp"

namespace kestrel {
namespace {

constexpr const char* not_checked = "not checked";

std::string range_text(const std::optional<Range>& range, const std::string& unit, int decimals = 0) {
    if (!range) return not_checked;
    const std::string low = fixed_text(range->low, decimals);
    const std::string high = fixed_text(range->high, decimals);
    return (low == high ? low : low + " to " + high) + " " + unit;
}

std::string cpu_text(const TelemetrySummary& summary) {
    std::string text = "others ";
    text += summary.others_cores ? fixed_text(*summary.others_cores, 2) + " cores" : not_checked;
    text += ", steal ";
    text += summary.steal_cores ? fixed_text(*summary.steal_cores, 2) + " cores" : not_checked;
    text += ", tasks waited ";
    text += summary.pressure ? percent_text(*summary.pressure * 100.0, 1) + " of the time" : not_checked;
    text += ", frequency " + range_text(summary.frequency_mhz, "MHz");
    text += ", throttled ";
    return text + (summary.cpu_throttles ? fixed_text(*summary.cpu_throttles, 0) + " times" : not_checked);
}

std::string gpu_text(const TelemetrySummary& summary) {
    const bool silent = !summary.sm_mhz && !summary.temperature_c && !summary.throttled_rounds && !summary.other_processes;
    if (silent) return not_checked;
    const auto errors = [](const std::optional<double>& count) { return count ? fixed_text(*count, 0) : std::string(not_checked); };
    std::string text = "SM clock " + range_text(summary.sm_mhz, "MHz") + ", memory clock " + range_text(summary.memory_mhz, "MHz");
    text += ", throttled after ";
    text += summary.throttled_rounds ? count_text(static_cast<std::int64_t>(*summary.throttled_rounds), "round") : not_checked;
    text += ", " + range_text(summary.temperature_c, "C") + ", " + range_text(summary.power_w, "W");
    text += ", memory errors " + errors(summary.ecc_uncorrected) + " uncorrectable and " + errors(summary.ecc_corrected) + " corrected";
    return text + ", other processes " + (summary.other_processes ? fixed_text(summary.other_processes->high, 0) : not_checked);
}

nlohmann::json number(const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json limits(const std::optional<Range>& range) {
    return range ? nlohmann::json::array({range->low, range->high}) : nlohmann::json(nullptr);
}

}  // namespace

std::string telemetry_section(const Session& session) {
    if (session.readings.empty()) return "\nTelemetry: not checked.\n";
    const TelemetrySummary summary = summarise_telemetry(session.readings);
    std::string text =
        "\nTelemetry (read between the rounds, after " + count_text(static_cast<std::int64_t>(summary.rounds), "round") + ")\n";
    text += field("CPU", cpu_text(summary));
    if (is_gpu(session.device)) text += field("GPU", gpu_text(summary));
    return text;
}

nlohmann::json telemetry_json(const Session& session) {
    const TelemetrySummary summary = summarise_telemetry(session.readings);
    nlohmann::json result{{"rounds", summary.rounds},
                          {"others_cores", number(summary.others_cores)},
                          {"steal_cores", number(summary.steal_cores)},
                          {"pressure_share", number(summary.pressure)},
                          {"frequency_mhz", limits(summary.frequency_mhz)},
                          {"cpu_throttles", number(summary.cpu_throttles)}};
    if (!is_gpu(session.device)) return result;
    nlohmann::json gpu{{"sm_mhz", limits(summary.sm_mhz)},
                       {"memory_mhz", limits(summary.memory_mhz)},
                       {"temperature_c", limits(summary.temperature_c)},
                       {"power_w", limits(summary.power_w)},
                       {"throttled_rounds", nullptr},
                       {"ecc_uncorrected", number(summary.ecc_uncorrected)},
                       {"ecc_corrected", number(summary.ecc_corrected)},
                       {"other_processes", limits(summary.other_processes)}};
    if (summary.throttled_rounds) gpu["throttled_rounds"] = *summary.throttled_rounds;
    result["gpu"] = std::move(gpu);
    return result;
}

}  // namespace kestrel
