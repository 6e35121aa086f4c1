#include "runner/stats/telemetry_summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>

namespace kestrel {
namespace {

// Values of the documented bits; 0x1 (idle), 0x2 (applications clocks) and 0x100 (display clocks) are states and settings.
constexpr std::array<std::pair<std::uint64_t, const char*>, 6> reasons_by_bit{{
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "software thermal slowdown"},
    {0x40, "hardware thermal slowdown"},
    {0x80, "power brake"},
}};

bool is_round(const Reading& reading) {
    return reading.round >= 0;
}

std::optional<Range> range_of(const std::vector<Reading>& readings, const std::string& source, const std::string& name) {
    std::optional<Range> range;
    for (const Reading& reading : readings) {
        const auto value = value_of(reading, source, name);
        if (!value || !is_round(reading)) continue;
        range = range ? Range{std::min(range->low, *value), std::max(range->high, *value)} : Range{*value, *value};
    }
    return range;
}

// Amount by time over all rounds in which `amount` is known.
template <typename Amount>
std::optional<double> mean_rate(const std::vector<Interlude>& rounds, Amount amount) {
    double total = 0.0;
    double seconds = 0.0;
    for (const Interlude& round : rounds) {
        const auto one = amount(round);
        if (!one) continue;
        total += *one;
        seconds += round.seconds();
    }
    if (!(seconds > 0.0)) return std::nullopt;
    return total / seconds;
}

std::optional<double> growth_in_all(const std::vector<Reading>& readings, const std::string& source, const std::string& name) {
    std::optional<double> total;
    const Reading* before = nullptr;
    for (const Reading& reading : readings) {
        if (!value_of(reading, source, name)) continue;
        total = total.value_or(0.0) + (before == nullptr ? 0.0 : Interlude{before, &reading}.growth(source, name).value_or(0.0));
        before = &reading;
    }
    return total;
}

}  // namespace

std::optional<double> value_of(const Reading& reading, const std::string& source, const std::string& name) {
    const auto values = reading.sources.find(source);
    if (values == reading.sources.end()) return std::nullopt;
    const auto value = values->second.find(name);
    if (value == values->second.end() || !std::isfinite(value->second)) return std::nullopt;
    return value->second;
}

std::optional<double> Interlude::growth(const std::string& source, const std::string& name) const {
    const auto before = value_of(*from, source, name);
    const auto after = value_of(*to, source, name);
    if (!before || !after || *after < *before) return std::nullopt;
    return *after - *before;
}

std::optional<double> Interlude::others_s() const {
    const auto busy = growth("cpu", "busy_s");
    const auto worker = growth("cpu", "worker_s");
    const auto own = growth("cpu", "own_s");
    if (!busy || !worker || !own) return std::nullopt;
    return *busy - *worker - *own;
}

std::vector<Interlude> interludes(const std::vector<Reading>& readings) {
    std::vector<const Reading*> ordered;
    ordered.reserve(readings.size());
    for (const Reading& reading : readings) ordered.push_back(&reading);
    const auto key = [](const Reading* r) { return std::tuple(r->replicate, r->super_round, r->round); };
    std::stable_sort(ordered.begin(), ordered.end(), [&](const Reading* a, const Reading* b) { return key(a) < key(b); });
    std::vector<Interlude> rounds;
    for (std::size_t i = 1; i < ordered.size(); ++i) {
        const Interlude one{ordered[i - 1], ordered[i]};
        if (one.from->replicate == one.to->replicate && is_round(*one.to) && one.seconds() > 0.0) rounds.push_back(one);
    }
    return rounds;
}

std::vector<std::string> throttle_names(double reasons) {
    std::vector<std::string> names;
    // A mask of documented bits is small; anything else would not fit an integer.
    if (!(reasons >= 0.0 && reasons < 9e15)) return names;
    const auto bits = static_cast<std::uint64_t>(reasons);
    for (const auto& [bit, name] : reasons_by_bit) {
        if ((bits & bit) != 0) names.emplace_back(name);
    }
    return names;
}

TelemetrySummary summarise_telemetry(const std::vector<Reading>& readings) {
    TelemetrySummary summary;
    const std::vector<Interlude> rounds = interludes(readings);
    summary.rounds = static_cast<std::size_t>(std::count_if(readings.begin(), readings.end(), is_round));
    summary.others_cores = mean_rate(rounds, [](const Interlude& round) { return round.others_s(); });
    if (summary.others_cores) summary.others_cores = std::max(*summary.others_cores, 0.0);
    summary.steal_cores = mean_rate(rounds, [](const Interlude& round) { return round.growth("cpu", "steal_s"); });
    summary.pressure = mean_rate(rounds, [](const Interlude& round) { return round.growth("pressure", "some_s"); });
    summary.frequency_mhz = range_of(readings, "frequency", "mean_mhz");
    summary.cpu_throttles = growth_in_all(readings, "throttling", "count");
    summary.sm_mhz = range_of(readings, "gpu", "sm_mhz");
    summary.memory_mhz = range_of(readings, "gpu", "memory_mhz");
    summary.temperature_c = range_of(readings, "gpu", "temperature_c");
    summary.power_w = range_of(readings, "gpu", "power_w");
    summary.ecc_uncorrected = growth_in_all(readings, "gpu", "ecc_uncorrected");
    summary.ecc_corrected = growth_in_all(readings, "gpu", "ecc_corrected");
    summary.other_processes = range_of(readings, "gpu", "other_processes");
    for (const Reading& reading : readings) {
        const auto reasons = value_of(reading, "gpu", "throttle_reasons");
        if (!reasons || !is_round(reading)) continue;
        summary.throttled_rounds = summary.throttled_rounds.value_or(0) + (throttle_names(*reasons).empty() ? 0U : 1U);
    }
    return summary;
}

}  // namespace kestrel
