#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "runner/stats/published.hpp"
#include "runner/stats/summary.hpp"
#include "runner/stats/telemetry_check.hpp"

namespace kestrel::telemetry_guards {
namespace {

std::string number(double value, const char* like = "0") {
    return rounded_like(like, value);
}

void check_throttling(Check& check) {
    std::vector<RoundKey> gpu;
    std::set<std::string> names;
    std::size_t known = 0;
    for (const Reading* reading : check.after) {
        const auto reasons = value_of(*reading, "gpu", "throttle_reasons");
        if (!reasons) continue;
        ++known;
        const auto active = throttle_names(*reasons);
        if (active.empty()) continue;
        names.insert(active.begin(), active.end());
        gpu.push_back(key_of(*reading));
    }
    if (gpu.empty()) return;
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    flag(check, gpu, known);
    warn(check, "THROTTLED", "the GPU's clock was held down (" + list + ") after " + of(gpu.size(), known),
         "it is part of the result if an arm causes it; otherwise lower the GPU's clock to one that it can hold");
}

void check_temperature(Check& check) {
    std::vector<double> values;
    for (const Reading* reading : check.after) {
        if (const auto value = value_of(*reading, "gpu", "temperature_c")) values.push_back(*value);
    }
    const auto quarter = values.size() / 4;
    if (quarter < 2) return;
    const std::span<const double> all(values);
    const double before = median(all.subspan(values.size() - 2 * quarter, quarter));
    const double last = median(all.subspan(values.size() - quarter));
    if (last - before < temperature_limit_c) return;
    warn(check, "TEMPERATURE",
         "the GPU was still warming up in the last quarter of the session, from " + number(before) + " to " + number(last) + " C",
         "the schedule cancels a drift; run it again warm to see the steady state");
}

void check_processes(Check& check) {
    std::vector<double> counts;
    std::vector<RoundKey> keys;
    std::set<std::string> pids;
    for (const Reading* reading : check.after) {
        const auto others = value_of(*reading, "gpu", "other_processes");
        if (!others) continue;
        counts.push_back(*others);
        keys.push_back(key_of(*reading));
        for (const auto& [name, value] : reading->sources.at("gpu")) {
            if (name.rfind("other_pid.", 0) == 0) pids.insert(number(value));
        }
    }
    if (counts.empty() || *std::max_element(counts.begin(), counts.end()) <= 0.0) return;
    const double usual = median(counts);
    std::vector<RoundKey> more;
    std::size_t with_any = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] > 0.0) ++with_any;
        if (counts[i] > usual) more.push_back(keys[i]);
    }
    std::string list;
    for (const std::string& pid : pids) list += (list.empty() ? " (process " : ", ") + pid;
    flag(check, more, counts.size());
    warn(check, "PROCESSES",
         "other processes had a context on the GPU after " + of(with_any, counts.size()) + (list.empty() ? "" : list + ")"),
         "end them; an idle one does no harm, but that cannot be told from outside");
}

}  // namespace

void check_steady(Check& check, const Steady& guard) {
    std::vector<double> values;
    std::vector<RoundKey> keys;
    for (const Reading* reading : check.after) {
        const auto value = value_of(*reading, guard.source, guard.name);
        if (!value) continue;
        values.push_back(*value);
        keys.push_back(key_of(*reading));
    }
    if (values.empty()) return;
    const double usual = median(values);
    std::vector<RoundKey> other;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::abs(values[i] - usual) > guard.limit * usual) other.push_back(keys[i]);
    }
    if (other.empty()) return;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    std::string sentence = std::string(guard.what) + " was " + number(usual) + " MHz as a rule, but between " + number(*low) + " and " +
                           number(*high) + " MHz after " + of(other.size(), values.size());
    flag(check, other, values.size());
    warn(check, guard.code, sentence, guard.advice);
}

void check_gpu(Check& check) {
    const char* const advice = "lock the GPU's clocks (nvidia-smi --lock-gpu-clocks)";
    check_steady(check, {"CLOCKS", "the GPU's SM clock", "gpu", "sm_mhz", sm_clock_limit, advice});
    check_steady(check, {"CLOCKS", "the GPU's memory clock", "gpu", "memory_mhz", memory_clock_limit, advice});
    check_throttling(check);
    check_temperature(check);
    check_processes(check);
}

// Errors counted between a reading and the one before that has the counter, whatever replicate it is of.
void check_ecc(Check& check, const std::vector<Reading>& readings) {
    for (const bool corrected : {false, true}) {
        const std::string name = corrected ? "ecc_corrected" : "ecc_uncorrected";
        const Reading* before = nullptr;
        double errors = 0.0;
        int first = 0;
        for (const Reading& reading : readings) {
            if (!value_of(reading, "gpu", name)) continue;
            const double grown = before == nullptr ? 0.0 : Interlude{before, &reading}.growth("gpu", name).value_or(0.0);
            if (errors == 0.0 && grown > 0.0) first = reading.replicate;
            errors += grown;
            before = &reading;
        }
        if (errors == 0.0) continue;
        const std::string where = number(errors) + " in the GPU's memory, first in replicate " + std::to_string(first);
        if (corrected) {
            warn(check, "ECC", "corrected memory errors: " + where, "the data is right; if it happens again, have the GPU checked");
        } else {
            check.found.failed_guards.push_back({"ECC", "uncorrectable memory errors: " + where, "have the GPU checked, then run again"});
        }
    }
}

}  // namespace kestrel::telemetry_guards
