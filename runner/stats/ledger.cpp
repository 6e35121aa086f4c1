#include "runner/stats/ledger.hpp"

#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <map>
#include <tuple>

#include "runner/stats/interval.hpp"

namespace kestrel {
namespace {

// The control's interval is recorded at its own confidence; the ledger counts at 95 % whatever the policies said.
bool excludes_zero_at_95(const Interval& control) {
    if (control.replicates < 2) return false;
    const double half_width = t_critical(0.95, control.replicates - 1) * control.sd / std::sqrt(static_cast<double>(control.replicates));
    return std::abs(control.d) > half_width;
}

struct Counts {
    std::vector<LedgerEntry> entries;
    int controls = 0;
    int excluded = 0;
    int alike = 0;
    int alarms = 0;
    int same = 0;
    int planted = 0;
    int found = 0;
    int covered = 0;
};

void count_verdict(const LedgerEntry& entry, Counts& counts) {
    if (!entry.same_code && !entry.planted_d) return;  // the truth is not known
    const double truth = entry.planted_d.value_or(0.0);
    const bool faster = entry.verdict == VerdictKind::faster;
    const bool slower = entry.verdict == VerdictKind::slower;
    if (truth == 0.0) {
        ++counts.alike;
        counts.alarms += faster || slower ? 1 : 0;
        counts.same += entry.verdict == VerdictKind::same ? 1 : 0;
        return;
    }
    ++counts.planted;
    counts.found += (truth > 0.0 ? faster : slower) ? 1 : 0;
    counts.covered += entry.candidate.lo <= truth && truth <= entry.candidate.hi ? 1 : 0;
}

}  // namespace

Proportion exact_proportion(int count, int of, double confidence) {
    Proportion proportion{count, of, 0.0, 1.0};
    if (of <= 0) return proportion;
    using Binomial = boost::math::binomial_distribution<double>;
    const double tail = (1.0 - confidence) / 2.0;
    const double n = of;
    const double k = count;
    if (count > 0) proportion.lo = Binomial::find_lower_bound_on_p(n, k, tail);
    if (count < of) proportion.hi = Binomial::find_upper_bound_on_p(n, k, tail);
    return proportion;
}

std::vector<LedgerRow> summarise(std::span<const LedgerEntry> entries) {
    std::map<std::tuple<std::string, std::string, std::string, std::string>, Counts> groups;
    for (const LedgerEntry& entry : entries) {
        Counts& counts = groups[{entry.host, entry.device, entry.engine, entry.launch_mode}];
        counts.entries.push_back(entry);
        if (entry.control.replicates >= 2) {
            ++counts.controls;
            counts.excluded += excludes_zero_at_95(entry.control) ? 1 : 0;
        }
        count_verdict(entry, counts);
    }
    std::vector<LedgerRow> rows;
    for (const auto& [key, counts] : groups) {
        LedgerRow row;
        std::tie(row.host, row.device, row.engine, row.launch_mode) = key;
        row.sessions = static_cast<int>(counts.entries.size());
        row.control_exclusions = exact_proportion(counts.excluded, counts.controls);
        row.control_sd = pooled_control_sd(counts.entries).value_or(0.0);
        row.false_alarms = exact_proportion(counts.alarms, counts.alike);
        row.same = exact_proportion(counts.same, counts.alike);
        row.found = exact_proportion(counts.found, counts.planted);
        row.covered = exact_proportion(counts.covered, counts.planted);
        rows.push_back(std::move(row));
    }
    return rows;
}

std::optional<double> pooled_control_sd(std::span<const LedgerEntry> entries) {
    double squares = 0.0;
    double degrees = 0.0;
    for (const LedgerEntry& entry : entries) {
        if (entry.control.replicates < 2 || !std::isfinite(entry.control.sd)) continue;
        const double d = static_cast<double>(entry.control.replicates - 1);
        squares += d * entry.control.sd * entry.control.sd;
        degrees += d;
    }
    if (degrees == 0.0) return std::nullopt;
    return std::sqrt(squares / degrees);
}

}  // namespace kestrel
