#include "reports/history.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "reports/format.hpp"
#include "reports/layout.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"

namespace kestrel {
namespace {

// Chosen so that a line with all columns stays within report_width.
constexpr std::size_t longest_name = 14;
constexpr std::size_t longest_host = 10;

std::string shortened(const std::string& text, std::size_t length) {
    return text.size() <= length ? text : text.substr(0, length - 1) + "~";
}

// RFC 3339 down to the minute: "2025-03-01 04:05".
std::string minute(const std::string& at) {
    std::string text = at.substr(0, 16);
    if (text.size() > 10 && text[10] == 'T') text[10] = ' ';
    return text;
}

auto group_of(const SessionSummary& s) {
    return std::tie(s.workload_sha256, s.host, s.device);
}
auto order_of(const SessionSummary& s) {
    return std::tuple_cat(group_of(s), std::tie(s.experiment, s.experiment_version, s.started_at, s.uuid));
}

std::vector<SessionSummary> sorted(std::vector<SessionSummary> sessions) {
    std::sort(sessions.begin(), sessions.end(), [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
    return sessions;
}

// A verdict and a ratio exist only once a session is sealed.
bool has_result(const SessionSummary& s) {
    return s.state == SessionState::sealed && s.verdict.has_value();
}

std::string result_text(const SessionSummary& s) {
    return std::string(has_result(s) ? name_of(*s.verdict) : name_of(s.state));
}

std::string ratio_cell(const SessionSummary& s) {
    return has_result(s) && s.candidate ? interval_text(*s.candidate) : "-";
}

std::string experiment_cell(const SessionSummary& s) {
    return shortened(s.experiment, longest_name) + " v" + std::to_string(s.experiment_version);
}

// What changed in a series since the session above.
std::string marks(const SessionSummary* before, const SessionSummary& s) {
    if (before == nullptr || before->experiment != s.experiment || before->experiment_version != s.experiment_version) return "";
    std::string text;
    if (before->base_sha256 != s.base_sha256) text += "base";
    if (before->environment_sha256 != s.environment_sha256) text += text.empty() ? "env" : "+env";
    return text;
}

std::string group_text(const std::vector<const SessionSummary*>& group) {
    const SessionSummary& first = *group.front();
    std::string text =
        wrapped("Workload ", short_hash(first.workload_sha256) + " of " + first.model_name + " on " + first.host + ", " + first.device);
    Table table;
    for (const char* title : {"session", "started (UTC)", "experiment", "ratio", "verdict", "base", "candidate", "changed"}) {
        table.add_column(title, Align::left);
    }
    const SessionSummary* before = nullptr;
    for (const SessionSummary* s : group) {
        table.add_row({short_id(s->uuid), minute(s->started_at), experiment_cell(*s), ratio_cell(*s), result_text(*s),
                       short_id(s->base_sha256), short_id(s->candidate_sha256), marks(before, *s)});
        before = s;
    }
    return text + table.text();
}

nlohmann::json summary_json(const SessionSummary& s) {
    nlohmann::json result = s;
    result["ratio"] = nullptr;
    if (!has_result(s) || !s.candidate || s.candidate->replicates < 1) return result;
    result["ratio"] = {{"ratio", std::exp(s.candidate->d)}, {"lo", nullptr}, {"hi", nullptr}};
    if (s.candidate->replicates < 2) return result;
    result["ratio"]["lo"] = std::exp(s.candidate->lo);
    result["ratio"]["hi"] = std::exp(s.candidate->hi);
    return result;
}

}  // namespace

std::string list_text(const std::vector<SessionSummary>& sessions) {
    if (sessions.empty()) return "No sessions.\n";
    Table table;
    for (const char* title : {"session", "started (UTC)", "experiment", "ratio", "verdict", "base", "candidate", "host"}) {
        table.add_column(title, Align::left);
    }
    for (const SessionSummary& s : sessions) {
        table.add_row({short_id(s.uuid), minute(s.started_at), experiment_cell(s), ratio_cell(s), result_text(s), short_id(s.base_sha256),
                       short_id(s.candidate_sha256), shortened(s.host, longest_host)});
    }
    return table.text();
}

std::string history_text(const std::vector<SessionSummary>& sessions) {
    if (sessions.empty()) return "No sessions.\n";
    const std::vector<SessionSummary> all = sorted(sessions);
    std::string text = "Ratios are base / candidate ms per token, each inside one session.\n";
    std::vector<const SessionSummary*> group;
    for (std::size_t i = 0; i < all.size(); ++i) {
        group.push_back(&all[i]);
        if (i + 1 < all.size() && group_of(all[i + 1]) == group_of(all[i])) continue;
        text += "\n" + group_text(group);
        group.clear();
    }
    return text;
}

nlohmann::json list_json(const std::vector<SessionSummary>& sessions) {
    nlohmann::json list = nlohmann::json::array();
    for (const SessionSummary& s : sessions) list.push_back(summary_json(s));
    return {{"format", 1}, {"kind", "list"}, {"sessions", list}};
}

nlohmann::json history_json(const std::vector<SessionSummary>& sessions) {
    nlohmann::json groups = nlohmann::json::array();
    const SessionSummary* before = nullptr;
    const std::vector<SessionSummary> all = sorted(sessions);
    for (const SessionSummary& s : all) {
        if (before == nullptr || group_of(*before) != group_of(s)) {
            groups.push_back({{"workload_sha256", s.workload_sha256},
                              {"model_name", s.model_name},
                              {"host", s.host},
                              {"device", s.device},
                              {"sessions", nlohmann::json::array()}});
        }
        groups.back()["sessions"].push_back(summary_json(s));
        before = &s;
    }
    return {{"format", 1}, {"kind", "history"}, {"groups", groups}};
}

}  // namespace kestrel
