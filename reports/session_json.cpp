#include <cmath>

#include "reports/session_text.hpp"
#include "reports/telemetry.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"

namespace kestrel {
namespace {

nlohmann::json ratio_json(const Interval& interval) {
    nlohmann::json result{
        {"ratio", nullptr}, {"lo", nullptr}, {"hi", nullptr}, {"confidence", interval.confidence}, {"replicates", interval.replicates}};
    if (interval.replicates >= 1) result["ratio"] = std::exp(interval.d);
    if (interval.replicates >= 2) {
        result["lo"] = std::exp(interval.lo);
        result["hi"] = std::exp(interval.hi);
    }
    return result;
}

}  // namespace

nlohmann::json session_json(const Session& session, const std::string& database_path) {
    nlohmann::json result = nullptr;
    if (session.verdict && session.state == SessionState::sealed) {
        const Verdict& verdict = *session.verdict;
        result = {{"verdict", std::string(name_of(verdict.kind))},
                  {"reasons", verdict.reasons},
                  {"margin", verdict.margin},
                  {"candidate", ratio_json(verdict.estimate.candidate)},
                  {"control", ratio_json(verdict.estimate.control)},
                  {"saved_ms_per_token", verdict.estimate.saved_ms_per_token}};
    }
    return {{"format", 1},
            {"kind", "session"},
            {"database", database_path},
            {"session", session},
            {"finished_rounds", round_rows(session.windows, RoundDetail::all).size()},
            {"telemetry", telemetry_json(session)},
            {"result", result}};
}

}  // namespace kestrel
