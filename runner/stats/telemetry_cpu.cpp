#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "runner/stats/published.hpp"
#include "runner/stats/summary.hpp"
#include "runner/stats/telemetry_check.hpp"

namespace kestrel::telemetry_guards {
namespace {

// The kernel tells CPU times in ticks of 10 ms, each field cut off, so the growth of a field is known to one tick: five fields are busy
// time, one is steal (platform/counters.hpp). What the counters read must exceed a limit by that before it counts.
constexpr double tick_s = 0.01;
constexpr double busy_ticks = 5.0;
constexpr double steal_ticks = 1.0;

// One amount over one or more rounds.
struct Unit {
    std::vector<RoundKey> rounds;
    double seconds = 0.0;
    double amount = 0.0;
    [[nodiscard]] double rate() const { return amount / seconds; }
};

using Amount = std::function<std::optional<double>(const Interlude&)>;

std::string number(double value, const char* like = "0") {
    return rounded_like(like, value);
}

void add_round(Unit& unit, const Interlude& round, double amount) {
    unit.rounds.push_back(key_of(*round.to));
    unit.seconds += round.seconds();
    unit.amount += amount;
}

std::vector<Unit> units_by_round(const std::vector<Interlude>& rounds, const Amount& amount) {
    std::vector<Unit> units;
    for (const Interlude& round : rounds) {
        if (const auto one = amount(round)) add_round(units.emplace_back(), round, *one);
    }
    return units;
}

// Whole super-rounds, as many in a row as it takes to resolve the limit: a round of 50 to 300 ms holds 5 to 30 ticks. What is left at the
// end of a replicate joins its last unit.
std::vector<Unit> units_by_super_round(const std::vector<Interlude>& rounds, const Amount& amount, double at_least_s) {
    std::vector<Unit> units;
    const auto same = [](const RoundKey& a, const RoundKey& b, std::size_t places) {
        return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(places), b.begin());
    };
    for (const Interlude& round : rounds) {
        const auto one = amount(round);
        if (!one) continue;
        const bool open = !units.empty() && same(units.back().rounds.back(), key_of(*round.to), 1) &&
                          (same(units.back().rounds.back(), key_of(*round.to), 2) || units.back().seconds < at_least_s);
        add_round(open ? units.back() : units.emplace_back(), round, *one);
    }
    for (std::size_t i = units.size(); i-- > 1;) {
        Unit& last = units[i];
        Unit& before = units[i - 1];
        if (last.seconds >= at_least_s || !same(before.rounds.back(), last.rounds.front(), 1)) continue;
        before.rounds.insert(before.rounds.end(), last.rounds.begin(), last.rounds.end());
        before.seconds += last.seconds;
        before.amount += last.amount;
        units.erase(units.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return units;
}

// What the rate of something is about.
struct RateGuard {
    const char* code;
    const char* what;  // "other programs used {rate} {unit}"
    const char* unit;
    const char* advice;
    double limit;         // above the median
    double resolution_s;  // uncertainty of an amount
    double scale = 1.0;   // from rate to what is printed
    const char* digits = "0.00";
};

void check_rate(Check& check, const RateGuard& guard, const std::vector<Unit>& units) {
    if (units.empty()) return;
    std::vector<double> rates;
    rates.reserve(units.size());
    for (const Unit& unit : units) rates.push_back(unit.rate());
    const double usual = std::max(median(rates), 0.0);
    std::vector<RoundKey> disturbed;
    std::size_t count = 0;
    std::size_t total = 0;
    double seconds = 0.0;
    double amount = 0.0;
    double worst = usual;
    for (const Unit& unit : units) {
        total += unit.rounds.size();
        seconds += unit.seconds;
        amount += unit.amount;
        if (!(unit.amount - guard.resolution_s > (usual + guard.limit) * unit.seconds)) continue;
        ++count;
        worst = std::max(worst, unit.rate());
        disturbed.insert(disturbed.end(), unit.rounds.begin(), unit.rounds.end());
    }
    // The uncertainties of many units partly cancel.
    const double uncertain = guard.resolution_s * std::sqrt(static_cast<double>(units.size()));
    const bool throughout = usual > guard.limit && amount - uncertain > guard.limit * seconds;
    if (count == 0 && !throughout) return;
    const auto shown = [&](double rate) { return number(rate * guard.scale, guard.digits) + " " + guard.unit; };
    std::string sentence = std::string(guard.what) + " " + shown(usual) + (throughout ? " throughout the session" : " as a rule");
    if (count > 0) sentence += ", and up to " + shown(worst) + " in " + of(disturbed.size(), total);
    flag(check, disturbed, total);
    warn(check, guard.code, sentence, guard.advice);
}

void check_times(Check& check) {
    const auto others = [](const Interlude& round) { return round.others_s(); };
    const auto steal = [](const Interlude& round) { return round.growth("cpu", "steal_s"); };
    const auto waited = [](const Interlude& round) { return round.growth("pressure", "some_s"); };
    const RateGuard load{"LOAD",           "other programs used", "cores", "stop them, or expect wider intervals",
                         load_limit_cores, busy_ticks * tick_s};
    const RateGuard stolen{"STEAL",           "the host of this virtual machine withheld",
                           "cores",           "measure on a machine of your own",
                           steal_limit_cores, steal_ticks * tick_s};
    const RateGuard pressure{"PRESSURE",      "tasks waited for a CPU in",
                             "% of the time", "stop other programs, or give the engine fewer threads than there are CPUs",
                             pressure_limit,  0.0,
                             100.0,           "0.0"};
    check_rate(check, load, units_by_super_round(check.rounds, others, load.resolution_s / load.limit));
    check_rate(check, stolen, units_by_super_round(check.rounds, steal, stolen.resolution_s / stolen.limit));
    check_rate(check, pressure, units_by_round(check.rounds, waited));
}

void check_throttling(Check& check) {
    std::vector<RoundKey> cpu;
    std::size_t known = 0;
    for (const Interlude& round : check.rounds) {
        const auto grown = round.growth("throttling", "count");
        if (!grown) continue;
        ++known;
        if (*grown > 0.0) cpu.push_back(key_of(*round.to));
    }
    if (!cpu.empty()) {
        flag(check, cpu, known);
        warn(check, "THROTTLED", "CPUs were throttled because of their temperature in " + of(cpu.size(), known),
             "improve the cooling, or run the CPUs at a lower fixed frequency");
    }
}

}  // namespace

void check_cpu(Check& check) {
    check_times(check);
    check_steady(check, {"FREQUENCY", "the CPUs' mean frequency", "frequency", "mean_mhz", frequency_limit,
                         "fix the frequency (governor 'performance', boost off)"});
    check_throttling(check);
}

}  // namespace kestrel::telemetry_guards
