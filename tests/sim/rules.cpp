// What rules in common use would have said about sessions that were really measured, beside the session's own verdict.
// Input: files of `kestrel-ab show SESSION --json`. Output: a line each, and for sessions whose truth was planted the counts.
#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runner/record/json.hpp"
#include "runner/record/names.hpp"
#include "runner/stats/ledger.hpp"
#include "tests/sim/pipeline.hpp"

namespace kestrel::sim {
namespace {

Session read_session(const std::string& path) {
    std::ifstream file(path);
    const nlohmann::json whole = nlohmann::json::parse(file);
    return whole.at("session").get<Session>();
}

std::optional<double> planted_d(const Session& session) {
    for (const Event& event : session.events) {
        if (event.kind == "planted") return nlohmann::json::parse(event.detail).at("d").get<double>();
    }
    return std::nullopt;
}

constexpr std::array<const char*, 5> rule_names{"verdict", "t over rounds", "Mann-Whitney", "2.6 sigma, 1 %", "mean +- sigma"};

// Which of the rules see a difference.
std::array<bool, 5> answers(const Session& session) {
    const NaiveAnswers naive = naive_answers(session.windows);
    const VerdictKind kind = session.verdict ? session.verdict->kind : VerdictKind::undecided;
    return {kind == VerdictKind::faster || kind == VerdictKind::slower, naive.t, naive.u, naive.sigma, naive.spread};
}

struct Tally {
    std::int64_t sessions = 0;
    std::array<std::int64_t, 5> seen{};
};

void print_tally(const char* what, const Tally& tally) {
    if (tally.sessions == 0) return;
    std::printf("\n%s, %lld sessions: called different by\n", what, static_cast<long long>(tally.sessions));
    for (std::size_t i = 0; i < rule_names.size(); ++i) {
        const Proportion p = exact_proportion(tally.seen.at(i), tally.sessions);
        std::printf("  %-16s %3lld  [%5.1f %%, %5.1f %%]\n", rule_names.at(i), static_cast<long long>(p.count), 100.0 * p.lo, 100.0 * p.hi);
    }
}

int run(const std::vector<std::string>& files) {
    Tally equal;
    Tally different;
    std::printf("%-10s %-10s %8s %20s  %s\n", "session", "verdict", "truth", "percent [95 %]", "called different by");
    for (const std::string& file : files) {
        const Session session = read_session(file);
        if (!session.verdict) continue;
        const std::optional<double> truth = planted_d(session);
        const std::array<bool, 5> said = answers(session);
        const Interval& interval = session.verdict->estimate.candidate;
        std::string names;
        for (std::size_t i = 1; i < said.size(); ++i)
            names += said.at(i) ? (names.empty() ? "" : "; ") + std::string(rule_names.at(i)) : "";
        std::printf("%-10s %-10s %8s %+6.2f [%+5.2f, %+5.2f]  %s\n", session.uuid.substr(0, 8).c_str(),
                    std::string(name_of(session.verdict->kind)).c_str(),
                    truth ? std::to_string(100.0 * std::expm1(*truth)).substr(0, 6).c_str() : "?", 100.0 * std::expm1(interval.d),
                    100.0 * std::expm1(interval.lo), 100.0 * std::expm1(interval.hi), names.c_str());
        const bool known_equal = session.place.kind == PlaceKind::none || (truth && *truth == 0.0);
        if (!known_equal && !truth) continue;
        Tally& tally = known_equal ? equal : different;
        ++tally.sessions;
        for (std::size_t i = 0; i < said.size(); ++i) tally.seen.at(i) += said.at(i) ? 1 : 0;
    }
    print_tally("identical arms", equal);
    print_tally("planted difference", different);
    return 0;
}

}  // namespace
}  // namespace kestrel::sim

int main(int argc, char** argv) {
    CLI::App app("What other rules would have said about measured sessions");
    std::vector<std::string> files;
    app.add_option("files", files, "Output of 'kestrel-ab show SESSION --json'")->required()->check(CLI::ExistingFile);
    CLI11_PARSE(app, argc, argv);
    try {
        return kestrel::sim::run(files);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
