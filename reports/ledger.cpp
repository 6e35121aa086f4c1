#include "reports/ledger.hpp"

#include "reports/format.hpp"
#include "reports/layout.hpp"

namespace kestrel {
namespace {

nlohmann::json proportion_json(const Proportion& p) {
    return {{"count", p.count}, {"of", p.of}, {"lo", p.lo}, {"hi", p.hi}};
}

}  // namespace

std::string proportion_text(const Proportion& proportion) {
    if (proportion.of == 0) return "none yet";
    return std::to_string(proportion.count) + " of " + std::to_string(proportion.of) + ", " +
           percent_text(100.0 * proportion.count / proportion.of, 1) + " [" + percent_text(100.0 * proportion.lo, 1) + ", " +
           percent_text(100.0 * proportion.hi, 1) + "]";
}

std::string ledger_text(const std::vector<LedgerRow>& rows) {
    if (rows.empty())
        return "No sealed session yet: every one adds its control, 'kestrel-ab selftest' adds sessions whose truth is known.\n";
    std::string text = "Ledger of sealed sessions; [exact binomial interval at 95 %]\n";
    for (const LedgerRow& row : rows) {
        text += "\n" + wrapped("", row.host + ", " + row.device + ", " + row.engine + ", " + row.launch_mode);
        text += field("sessions", std::to_string(row.sessions));
        text += field("controls",
                      proportion_text(row.control_exclusions) + " of base against its byte copy exclude 0 at 95 %; about 5 % should");
        text += field("scatter", percent_text(100.0 * row.control_sd, 3) + " between replicates, pooled over the controls");
        text += field("alarms", proportion_text(row.false_alarms) + " of identical builds called FASTER or SLOWER");
        text += field("same", proportion_text(row.same) + " of identical builds called SAME");
        text += field("found", proportion_text(row.found) + " of planted differences found");
        text += field("covered", proportion_text(row.covered) + " of planted differences inside the interval");
    }
    return text;
}

nlohmann::json ledger_json(const std::vector<LedgerRow>& rows) {
    nlohmann::json list = nlohmann::json::array();
    for (const LedgerRow& row : rows) {
        list.push_back({{"host", row.host},
                        {"device", row.device},
                        {"engine", row.engine},
                        {"launch_mode", row.launch_mode},
                        {"sessions", row.sessions},
                        {"control_exclusions", proportion_json(row.control_exclusions)},
                        {"control_sd", row.control_sd},
                        {"false_alarms", proportion_json(row.false_alarms)},
                        {"same", proportion_json(row.same)},
                        {"found", proportion_json(row.found)},
                        {"covered", proportion_json(row.covered)}});
    }
    return {{"format", 1}, {"kind", "ledger"}, {"rows", list}};
}

}  // namespace kestrel
