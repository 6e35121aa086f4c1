#include "reports/compare.hpp"

#include <algorithm>
#include <set>

#include "reports/format.hpp"
#include "reports/layout.hpp"
#include "reports/place_text.hpp"
#include "runner/record/names.hpp"

namespace kestrel {
namespace {

class Differences {
  public:
    void look(const std::string& what, const std::string& first, const std::string& second) {
        if (first != second) found_.push_back({what, first.empty() ? "(none)" : first, second.empty() ? "(none)" : second});
    }
    void look(const std::string& what, int first, int second) { look(what, std::to_string(first), std::to_string(second)); }
    [[nodiscard]] std::vector<SessionDifference> found() && { return std::move(found_); }

  private:
    std::vector<SessionDifference> found_;
};

std::string tokens_text(const std::vector<std::int32_t>& tokens) {
    std::string text = count_text(static_cast<std::int64_t>(tokens.size()), "token") + ":";
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < std::min(shown, tokens.size()); ++i) text += " " + std::to_string(tokens[i]);
    return tokens.size() > shown ? text + " ..." : text;
}

void look_at_workload(Differences& differences, const Workload& a, const Workload& b) {
    differences.look("model", a.model_name, b.model_name);
    differences.look("weights", a.weights_digest, b.weights_digest);
    differences.look("weight layout", a.layout_id, b.layout_id);
    differences.look("launch mode", a.launch_mode, b.launch_mode);
    differences.look("layers", a.layers, b.layers);
    differences.look("threads", a.threads, b.threads);
    differences.look("position", a.position, b.position);
    if (a.tokens != b.tokens) {
        const std::string first = tokens_text(a.tokens);
        const std::string second = tokens_text(b.tokens);
        differences.look("token sequence", first, first == second ? second + " (differs further on)" : second);
    }
    differences.look("workload", a.sha256, b.sha256);
}

void look_at_environment(Differences& differences, const Environment& a, const Environment& b) {
    std::set<std::string> keys;
    for (const Environment* side : {&a, &b}) {
        for (const auto& [key, value] : side->facts) keys.insert(key);
    }
    const auto fact = [](const Environment& side, const std::string& key) {
        const auto found = side.facts.find(key);
        return found == side.facts.end() ? std::string() : found->second;
    };
    for (const std::string& key : keys) differences.look("environment: " + key, fact(a, key), fact(b, key));
}

// The command that answers the question the user probably has: one candidate against the other, side by side.
std::string instead(const Session& a, const Session& b) {
    const std::size_t candidate = index_of(ArmRole::candidate);
    const auto path = [&](const Session& session) {
        const std::string& sha256 = session.arms[candidate].artifact_sha256;
        for (const Artifact& artifact : session.artifacts) {
            if (artifact.sha256 == sha256 && !artifact.stored_path.empty()) return artifact.stored_path;
        }
        return sha256.empty() ? std::string("A.so") : sha256 + ".so";
    };
    if (a.uuid == b.uuid) return "kestrel-ab show " + a.uuid;
    if (a.arms[candidate].artifact_sha256 == b.arms[candidate].artifact_sha256) return "kestrel-ab history " + a.plan.experiment;
    return "kestrel-ab run --base " + path(a) + " --candidate " + path(b);
}

}  // namespace

std::vector<SessionDifference> session_differences(const Session& a, const Session& b) {
    Differences differences;
    differences.look("date", a.started_at, b.started_at);
    differences.look("host", a.host, b.host);
    differences.look("device", a.device, b.device);
    for (const ArmRole role : {ArmRole::base, ArmRole::control, ArmRole::candidate}) {
        const Arm& first = a.arms.at(index_of(role));
        const Arm& second = b.arms.at(index_of(role));
        const std::string name(name_of(role));
        differences.look(name + " artifact", first.artifact_sha256, second.artifact_sha256);
        differences.look(name + " switches", switches_text(first.switches), switches_text(second.switches));
    }
    look_at_workload(differences, a.workload, b.workload);
    look_at_environment(differences, a.environment, b.environment);
    differences.look("runner", a.runner_version, b.runner_version);
    differences.look("experiment", a.plan.experiment + " v" + std::to_string(a.plan.experiment_version),
                     b.plan.experiment + " v" + std::to_string(b.plan.experiment_version));
    return std::move(differences).found();
}

std::string compare_text(const Session& a, const Session& b) {
    std::string text = "Refused: sessions are never compared with each other.\n";
    text += field("first", a.uuid) + field("second", b.uuid);
    if (a.uuid == b.uuid) {
        text += wrapped("", "Both names mean the same session. Its own report compares its base with its candidate.");
    } else {
        text += wrapped("", "Times of two sittings differ by whatever changed between them, and not only by the code. Between these two:");
        for (const SessionDifference& d : session_differences(a, b)) {
            text += wrapped("  ", d.what) + wrapped("    first   ", d.first) + wrapped("    second  ", d.second);
        }
        text += wrapped("",
                        "Compare the builds in one session instead; if they differ in more than one place, that will be refused "
                        "with the list:");
    }
    return text + wrapped("  ", instead(a, b));
}

nlohmann::json compare_json(const Session& a, const Session& b) {
    nlohmann::json list = nlohmann::json::array();
    for (const SessionDifference& d : session_differences(a, b))
        list.push_back({{"what", d.what}, {"first", d.first}, {"second", d.second}});
    return {{"format", 1},      {"kind", "compare"},   {"answer", "refused"},     {"first", a.uuid},
            {"second", b.uuid}, {"differences", list}, {"instead", instead(a, b)}};
}

}  // namespace kestrel
