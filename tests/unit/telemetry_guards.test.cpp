// Guards over made-up readings: each fires on its cause, none on a quiet session, and what is absent is said to be.
#include "runner/stats/telemetry_guards.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "runner/plan/plan.hpp"
#include "runner/record/names.hpp"
#include "runner/stats/assess.hpp"
#include "runner/stats/telemetry_summary.hpp"
#include "tests/sim/pipeline.hpp"

using namespace kestrel;

namespace {

Plan small_plan() {
    PlanRequest request;
    request.replicates = 6;
    request.super_rounds = 4;
    request.tokens = 4;
    return make_plan(request);
}

std::vector<Window> windows_of(const Plan& plan, double effect = 0.0) {
    sim::Scenario scenario;
    scenario.effect = effect;
    sim::Normal normal{Random(11)};
    std::vector<Window> windows;
    sim::simulate(scenario, plan, 0, plan.replicates, normal, windows);
    return windows;
}

// Rates and states of one round.
struct State {
    double others = 0.02;  // cores
    double steal = 0.001;
    double pressure = 0.003;
    double mhz = 3000.0;
    double throttles = 0.0;  // new ones
    double sm_mhz = 1980.0;
    double memory_mhz = 2619.0;
    double reasons = 1.0;  // idle
    double celsius = 55.0;
    double corrected = 0.0;  // new ones
    double uncorrected = 0.0;
    double other_processes = 0.0;
};
using Change = std::function<void(State&, const RoundKey&)>;

// A session whose rounds take `round_s` each, on two threads.
std::vector<Reading> readings_of(const Plan& plan, const Change& change, double round_s = 0.2) {
    std::vector<Reading> readings;
    double at = 0.0;
    double busy = 1000.0;
    double steal = 3.0;
    double pressure = 20.0;
    double throttles = 4.0;
    double corrected = 1.0;
    double uncorrected = 0.0;
    for (int replicate = 0; replicate < plan.replicates; ++replicate) {
        double worker = 5.0;
        double own = 1.0;
        const auto read = [&](int super_round, int round, const State& s) {
            Reading reading{replicate, super_round, round, static_cast<std::int64_t>(at * 1e9), {}};
            // As the kernel tells times: in whole ticks.
            const auto ticks = [](double seconds) { return std::floor(seconds * 100.0) / 100.0; };
            reading.sources["cpu"] = {{"busy_s", ticks(busy)}, {"steal_s", ticks(steal)}, {"worker_s", worker}, {"own_s", own}};
            reading.sources["pressure"] = {{"some_s", pressure}};
            reading.sources["frequency"] = {{"mean_mhz", s.mhz}};
            reading.sources["throttling"] = {{"count", throttles}};
            reading.sources["gpu"] = {{"sm_mhz", s.sm_mhz},
                                      {"memory_mhz", s.memory_mhz},
                                      {"throttle_reasons", s.reasons},
                                      {"temperature_c", s.celsius},
                                      {"power_w", 300.0},
                                      {"ecc_corrected", corrected},
                                      {"ecc_uncorrected", uncorrected},
                                      {"processes", 1.0 + s.other_processes},
                                      {"other_processes", s.other_processes}};
            if (s.other_processes > 0) reading.sources["gpu"]["other_pid.0"] = 4343;
            readings.push_back(reading);
        };
        at += 3.0;
        read(-1, -1, State{});
        for (int super_round = 0; super_round < plan.super_rounds; ++super_round) {
            for (int round = 0; round < 6; ++round) {
                State s;
                change(s, {replicate, super_round, round});
                at += round_s;
                worker += 2.0 * round_s;
                own += 0.001;
                busy += (2.0 + s.others) * round_s + 0.001;
                steal += s.steal * round_s;
                pressure += s.pressure * round_s;
                throttles += s.throttles;
                corrected += s.corrected;
                uncorrected += s.uncorrected;
                read(super_round, round, s);
            }
        }
    }
    return readings;
}

void quiet(State&, const RoundKey&) {}

std::vector<std::string> codes(const std::vector<Finding>& findings) {
    std::vector<std::string> list;
    for (const Finding& one : findings) list.push_back(one.code);
    return list;
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_CASE("telemetry guards: a quiet session has nothing to say", "[telemetry]") {
    const Plan plan = small_plan();
    const std::vector<Window> windows = windows_of(plan);
    for (const double round_s : {0.002, 0.05, 0.2, 2.0}) {
        INFO("rounds of " << round_s << " s");
        const TelemetryFindings found = check_telemetry(plan, windows, readings_of(plan, quiet, round_s), true);
        CHECK(codes(found.warnings).empty());
        CHECK(found.failed_guards.empty());
        CHECK(found.flagged.empty());
    }
}

TEST_CASE("telemetry guards: a disturbance of some rounds is named and flags them", "[telemetry]") {
    const Plan plan = small_plan();
    const std::vector<Window> windows = windows_of(plan);
    struct Case {
        const char* code;
        void (*disturb)(State&);
        bool whole_super_round;  // where a round is too short to resolve it
    };
    const std::vector<Case> cases{
        {"LOAD", [](State& s) { s.others = 0.6; }, true},           {"STEAL", [](State& s) { s.steal = 0.2; }, true},
        {"PRESSURE", [](State& s) { s.pressure = 0.3; }, false},    {"FREQUENCY", [](State& s) { s.mhz = 2800.0; }, false},
        {"FREQUENCY", [](State& s) { s.mhz = 3200.0; }, false},     {"THROTTLED", [](State& s) { s.throttles = 2.0; }, false},
        {"THROTTLED", [](State& s) { s.reasons = 0x45; }, false},   {"CLOCKS", [](State& s) { s.sm_mhz = 1935.0; }, false},
        {"CLOCKS", [](State& s) { s.memory_mhz = 1593.0; }, false}, {"PROCESSES", [](State& s) { s.other_processes = 2.0; }, false},
    };
    for (const Case& c : cases) {
        INFO(c.code);
        const auto readings = readings_of(plan, [&](State& s, const RoundKey& key) {
            if (key[0] == 2 && key[1] == 1) c.disturb(s);
        });
        const TelemetryFindings found = check_telemetry(plan, windows, readings, true);
        REQUIRE(codes(found.warnings) == Codes{c.code});
        CHECK_FALSE(found.warnings[0].advice.empty());
        CHECK(found.failed_guards.empty());
        REQUIRE(found.flagged.size() == 6);
        for (const RoundKey& key : found.flagged) CHECK((key[0] == 2 && key[1] == 1));

        // One round of it.
        const auto short_readings = readings_of(plan, [&](State& s, const RoundKey& key) {
            if (key == RoundKey{2, 1, 3}) c.disturb(s);
        });
        const TelemetryFindings one = check_telemetry(plan, windows, short_readings, true);
        if (!c.whole_super_round) CHECK(one.flagged == std::set<RoundKey>{{2, 1, 3}});
        if (c.whole_super_round) CHECK((one.flagged.empty() || one.flagged.size() == 6));
    }
}

TEST_CASE("telemetry guards: what all rounds share is told and flags none", "[telemetry]") {
    const Plan plan = small_plan();
    const std::vector<Window> windows = windows_of(plan);
    struct Case {
        const char* code;
        void (*disturb)(State&);
    };
    for (const Case& c :
         {Case{"LOAD", [](State& s) { s.others = 0.6; }}, Case{"STEAL", [](State& s) { s.steal = 0.2; }},
          Case{"PRESSURE", [](State& s) { s.pressure = 0.3; }}, Case{"THROTTLED", [](State& s) { s.throttles = 2.0; }},
          Case{"THROTTLED", [](State& s) { s.reasons = 4; }}, Case{"PROCESSES", [](State& s) { s.other_processes = 1.0; }}}) {
        INFO(c.code);
        const auto readings = readings_of(plan, [&](State& s, const RoundKey&) { c.disturb(s); });
        const TelemetryFindings found = check_telemetry(plan, windows, readings, true);
        CHECK(codes(found.warnings) == Codes{c.code});
        CHECK(found.flagged.empty());
    }
    // A clock without a usual value: no round is the odd one out.
    const auto restless = readings_of(plan, [](State& s, const RoundKey& key) { s.sm_mhz = 1000.0 + 180.0 * key[2]; });
    const TelemetryFindings found = check_telemetry(plan, windows, readings_of(plan, quiet), true);
    CHECK(found.warnings.empty());
    CHECK(codes(check_telemetry(plan, windows, restless, true).warnings) == Codes{"CLOCKS"});
    CHECK(check_telemetry(plan, windows, restless, true).flagged.empty());
}

TEST_CASE("telemetry guards: load in sessions whose rounds are shorter than a tick", "[telemetry]") {
    const Plan plan = small_plan();
    const std::vector<Window> windows = windows_of(plan);
    const auto load_of = [&](double cores) {
        return check_telemetry(plan, windows,
                               readings_of(
                                   plan, [&](State& s, const RoundKey&) { s.others = cores; }, 0.008),
                               true);
    };
    CHECK(codes(load_of(1.5).warnings) == Codes{"LOAD"});
    CHECK(load_of(0.12).warnings.empty());  // 23 ms of it in a replicate: not to be told from five ticks
}

TEST_CASE("telemetry guards: names in the sentences", "[telemetry]") {
    const Plan plan = small_plan();
    const std::vector<Window> windows = windows_of(plan);
    const auto sentence = [&](const Change& change) {
        return check_telemetry(plan, windows, readings_of(plan, change), true).warnings.at(0).sentence;
    };
    CHECK(sentence([](State& s, const RoundKey&) { s.reasons = 0x1 | 0x2 | 0x4 | 0x20 | 0x100; }) ==
          "the GPU's clock was held down (power cap, software thermal slowdown) after 144 of 144 rounds");
    CHECK(sentence([](State& s, const RoundKey& key) { s.other_processes = key[0] == 0 ? 1.0 : 0.0; }) ==
          "other processes had a context on the GPU after 24 of 144 rounds (process 4343)");
    // To a tick of 10 ms in 1.2 s.
    CHECK_THAT(
        sentence([](State& s, const RoundKey& key) { s.others = key[0] == 0 && key[1] == 0 ? 0.65 : 0.02; }),
        Catch::StartsWith("other programs used 0.02 cores as a rule, and up to 0.6") && Catch::EndsWith(" cores in 6 of 144 rounds"));
    CHECK(sentence([](State& s, const RoundKey& key) { s.mhz = key[0] == 0 ? 2400.0 : 3000.0; }) ==
          "the CPUs' mean frequency was 3000 MHz as a rule, but between 2400 and 3000 MHz after 24 of 144 rounds");
    CHECK(throttle_names(0x103).empty());  // idle, applications clocks, display clocks
    CHECK(throttle_names(-1.0).empty());
    CHECK(throttle_names(0xfc).size() == 6);
}

TEST_CASE("telemetry guards: a GPU that still warms up, and one that did so at the beginning", "[telemetry]") {
    const Plan plan = small_plan();
    const std::vector<Window> windows = windows_of(plan);
    const auto rising = readings_of(plan, [](State& s, const RoundKey& key) { s.celsius = 50.0 + 2.0 * key[0]; });
    CHECK(codes(check_telemetry(plan, windows, rising, true).warnings) == Codes{"TEMPERATURE"});
    const auto warmed =
        readings_of(plan, [](State& s, const RoundKey& key) { s.celsius = key[0] == 0 ? 40.0 + key[1] : 55.0 + key[2] % 2; });
    CHECK(check_telemetry(plan, windows, warmed, true).warnings.empty());
}

TEST_CASE("telemetry guards: memory errors", "[telemetry]") {
    const Plan plan = small_plan();
    const std::vector<Window> windows = windows_of(plan);
    const auto corrected = readings_of(plan, [](State& s, const RoundKey& key) { s.corrected = key == RoundKey{3, 0, 0} ? 2.0 : 0.0; });
    const TelemetryFindings warned = check_telemetry(plan, windows, corrected, true);
    CHECK(codes(warned.warnings) == Codes{"ECC"});
    CHECK(warned.failed_guards.empty());
    const auto wrong = readings_of(plan, [](State& s, const RoundKey& key) { s.uncorrected = key == RoundKey{3, 0, 0} ? 1.0 : 0.0; });
    const TelemetryFindings failed = check_telemetry(plan, windows, wrong, true);
    CHECK(failed.warnings.empty());
    REQUIRE(codes(failed.failed_guards) == Codes{"ECC"});
    CHECK_THAT(failed.failed_guards[0].sentence, Catch::Contains("1 in the GPU's memory, first in replicate 3"));
    // Between two replicates as well: the first reading of the later one tells it.
    auto between = readings_of(plan, quiet);
    for (Reading& reading : between) {
        if (reading.replicate >= 4) reading.sources["gpu"]["ecc_uncorrected"] = 1.0;
    }
    CHECK(codes(check_telemetry(plan, windows, between, true).failed_guards) == Codes{"ECC"});
    Evidence evidence;
    evidence.outputs_equal = true;
    evidence.outputs_vacuous = false;
    add_telemetry(evidence, plan, windows, wrong, true);
    CHECK(assess(plan, windows, evidence).verdict.kind == VerdictKind::invalid);
}

TEST_CASE("telemetry guards: absent sources are named, and no other guard speaks of them", "[telemetry]") {
    const Plan plan = small_plan();
    const std::vector<Window> windows = windows_of(plan);
    const auto without = [&](const std::string& source, const std::string& name, bool uses_gpu = true) {
        auto readings = readings_of(plan, quiet);
        for (Reading& reading : readings) {
            if (name.empty()) reading.sources.erase(source);
            if (!name.empty()) reading.sources[source].erase(name);
        }
        const TelemetryFindings found = check_telemetry(plan, windows, readings, uses_gpu);
        CHECK(found.flagged.empty());
        return found.warnings.size() == 1 && found.warnings[0].code == "NOT_CHECKED" ? found.warnings[0].sentence : std::string();
    };
    CHECK(without("cpu", "") == "no telemetry of CPU load and steal");
    CHECK(without("pressure", "") == "no telemetry of CPU pressure");
    CHECK(without("frequency", "") == "no telemetry of CPU frequency");
    CHECK(without("throttling", "") == "no telemetry of CPU throttling");
    CHECK(without("gpu", "") == "no telemetry of GPU");
    CHECK(without("gpu", "sm_mhz") == "no telemetry of GPU clocks");
    CHECK(without("gpu", "throttle_reasons") == "no telemetry of GPU throttling");
    CHECK(without("gpu", "temperature_c") == "no telemetry of GPU temperature");
    CHECK(without("gpu", "ecc_uncorrected") == "no telemetry of GPU memory errors");
    CHECK(without("gpu", "other_processes") == "no telemetry of other processes on the GPU");
    CHECK(without("gpu", "", false).empty());  // a session on a CPU lacks nothing
    CHECK(check_telemetry(plan, windows, {}, true).warnings.at(0).sentence ==
          "no telemetry of CPU load and steal, CPU pressure, CPU frequency, CPU throttling, GPU");

    auto later_gone = readings_of(plan, quiet);
    for (Reading& reading : later_gone) {
        if (reading.replicate == 5) reading.sources.erase("gpu");
    }
    CHECK_THAT(check_telemetry(plan, windows, later_gone, true).warnings.at(0).sentence,
               Catch::StartsWith("no telemetry of GPU clocks (after 24 of 144 rounds), GPU throttling (after 24 of"));
    CHECK(check_telemetry(plan, {}, {}, true).warnings.empty());
}

TEST_CASE("telemetry guards: they do not look at the arms, nor at rounds without windows", "[telemetry]") {
    const Plan plan = small_plan();
    std::vector<Window> windows = windows_of(plan);
    const auto readings = readings_of(plan, [](State& s, const RoundKey& key) {
        if (key[0] == 5) s.pressure = 0.4;
        if (key[2] == 4) s.sm_mhz = 1800.0;
    });
    const TelemetryFindings found = check_telemetry(plan, windows, readings, true);
    REQUIRE(found.flagged.size() == 24 + 20);
    for (Window& window : windows) window.arm = static_cast<ArmRole>((index_of(window.arm) + 1) % 3);
    const TelemetryFindings other = check_telemetry(plan, windows, readings, true);
    CHECK(other.flagged == found.flagged);
    CHECK(codes(other.warnings) == codes(found.warnings));
    windows.erase(std::remove_if(windows.begin(), windows.end(), [](const Window& window) { return window.replicate == 5; }),
                  windows.end());
    CHECK(check_telemetry(plan, windows, readings, true).flagged.size() == 20);
}

TEST_CASE("telemetry guards: a verdict that hangs on disturbed rounds is UNDECIDED", "[telemetry]") {
    const Plan plan = small_plan();
    // Base and its copy lose in the throttled half only.
    std::vector<Window> windows = windows_of(plan);
    const auto throttled = [](const RoundKey& key) { return key[1] < 2; };
    const auto readings = readings_of(plan, [&](State& s, const RoundKey& key) { s.reasons = throttled(key) ? 0x40 : 1.0; });
    for (Window& window : windows) {
        const bool slow = throttled({window.replicate, window.super_round, window.round});
        if (window.arm == ArmRole::candidate || !slow) continue;
        window.window_ns = window.window_ns * 11 / 10;
        for (std::int64_t& ns : window.token_ns) ns = ns * 11 / 10;
    }
    Evidence evidence;
    evidence.outputs_equal = true;
    evidence.outputs_vacuous = false;
    REQUIRE(assess(plan, windows, evidence).verdict.kind == VerdictKind::faster);
    add_telemetry(evidence, plan, windows, readings, true);
    REQUIRE(evidence.without_flagged);
    const Verdict verdict = assess(plan, windows, evidence).verdict;
    CHECK(verdict.kind == VerdictKind::undecided);
    CHECK(
        std::any_of(verdict.reasons.begin(), verdict.reasons.end(), [](const std::string& r) { return r.rfind("SENSITIVITY: ", 0) == 0; }));
    CHECK(std::any_of(verdict.reasons.begin(), verdict.reasons.end(), [](const std::string& r) { return r.rfind("THROTTLED: ", 0) == 0; }));
    // The same effect in every round does not hang on them.
    std::vector<Window> steady = windows_of(plan, 0.05);
    Evidence sound;
    sound.outputs_equal = true;
    sound.outputs_vacuous = false;
    add_telemetry(sound, plan, steady, readings, true);
    CHECK(assess(plan, steady, sound).verdict.kind == VerdictKind::faster);
}

TEST_CASE("telemetry summary: rates over all rounds, ranges after them", "[telemetry]") {
    const Plan plan = small_plan();
    const auto readings = readings_of(plan, [](State& s, const RoundKey& key) {
        s.others = 0.5;
        s.steal = 0.1;
        s.pressure = 0.25;
        s.mhz = 3000.0 - key[2];
        s.celsius = 50.0 + key[0];
        s.reasons = key[0] == 1 ? 4.0 : 1.0;
        s.corrected = key == RoundKey{1, 1, 1} ? 3.0 : 0.0;
    });
    const TelemetrySummary summary = summarise_telemetry(readings);
    CHECK(summary.rounds == 144);
    CHECK(summary.others_cores.value() == Approx(0.5).margin(0.005));
    CHECK(summary.steal_cores.value() == Approx(0.1).margin(0.005));
    CHECK(summary.pressure.value() == Approx(0.25).margin(1e-6));
    CHECK(summary.frequency_mhz->low == 2995.0);
    CHECK(summary.frequency_mhz->high == 3000.0);
    CHECK(summary.temperature_c->high == 55.0);
    CHECK(summary.throttled_rounds == 24U);
    CHECK(summary.ecc_corrected == 3.0);
    CHECK(summary.ecc_uncorrected == 0.0);
    CHECK(summary.cpu_throttles == 0.0);
    CHECK(summary.other_processes->high == 0.0);
    const TelemetrySummary none = summarise_telemetry({});
    CHECK(none.rounds == 0);
    CHECK_FALSE(none.others_cores);
    CHECK_FALSE(none.throttled_rounds);
    CHECK_FALSE(none.ecc_uncorrected);
}
