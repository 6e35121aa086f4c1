#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "reports/compare.hpp"
#include "reports/diff.hpp"
#include "reports/doctor.hpp"
#include "reports/format.hpp"
#include "reports/history.hpp"
#include "reports/layout.hpp"
#include "reports/progress.hpp"
#include "reports/session_svg.hpp"
#include "reports/session_text.hpp"
#include "runner/record/json.hpp"
#include "tests/unit/reports_fixture.hpp"

using namespace kestrel;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

// The first lines that differ, with '-' for the approved and '+' for the new text.
std::string first_difference(const std::string& approved, const std::string& actual) {
    const std::vector<std::string> before = lines_of(approved);
    const std::vector<std::string> after = lines_of(actual);
    std::string text;
    int shown = 0;
    for (std::size_t i = 0; i < std::max(before.size(), after.size()) && shown < 6; ++i) {
        const std::string* old_line = i < before.size() ? &before[i] : nullptr;
        const std::string* new_line = i < after.size() ? &after[i] : nullptr;
        if (old_line != nullptr && new_line != nullptr && *old_line == *new_line) continue;
        ++shown;
        text += "line " + std::to_string(i + 1) + "\n";
        if (old_line != nullptr) text += "- " + *old_line + "\n";
        if (new_line != nullptr) text += "+ " + *new_line + "\n";
    }
    return text;
}

// Compares with tests/golden/<name>. KESTREL_APPROVE=1 in the environment writes the file instead: read the change, then commit it.
void check_approved(const std::string& name, const std::string& actual) {
    const std::string path = std::string(KESTREL_TEST_DIR) + "/golden/" + name;
    const char* approve = std::getenv("KESTREL_APPROVE");
    if (approve != nullptr && std::string(approve) == "1") {
        std::ofstream file(path, std::ios::binary);
        file << actual;
        REQUIRE(file.good());
        return;
    }
    std::ifstream file(path, std::ios::binary);
    INFO("approved file: " << path);
    REQUIRE(file.good());
    std::ostringstream approved;
    approved << file.rdbuf();
    INFO(first_difference(approved.str(), actual));
    const bool is_as_approved = approved.str() == actual;
    CHECK(is_as_approved);
}

void check_layout(const std::string& text) {
    REQUIRE_FALSE(text.empty());
    CHECK(text.back() == '\n');
    for (const std::string& line : lines_of(text)) {
        INFO(line);
        CHECK(columns_of(line) <= report_width);
        CHECK((line.empty() || line.back() != ' '));
    }
}

void check_report(const std::string& name, const std::string& text) {
    check_layout(text);
    check_approved(name, text);
}

const SessionTextOptions options{"state/kestrel-ab/kestrel.db", RoundDetail::super_rounds};

std::vector<DoctorItem> doctor_items() {
    return {
        {"database", DoctorStatus::ok, "state/kestrel-ab/kestrel.db, 214 sessions, all seals hold", ""},
        {"frequency governor", DoctorStatus::missing, "powersave on 32 of 32 cores",
         "ask an administrator for the performance governor (cpupower frequency-set -g performance); until then intervals are wider "
         "and more replicates are needed"},
        {"CUDA device", DoctorStatus::not_checked, "no driver is loaded", ""},
    };
}

const DiffSide base_side{"lib/base.so", fixture::hash('a')};
const DiffSide candidate_side{"lib/candidate.so", fixture::hash('c')};
const Place define_place{PlaceKind::define, "VLLM_GEMV_AB_BASELINE", "1", "(unset)", {"gdn_layer.o", "f32_gemv.o"}};
const Place flag_place{PlaceKind::flag, "optimisation", "-O2", "-O3", {}};

}  // namespace

TEST_CASE("svg: a sealed session, one without a verdict, and one with nothing measured") {
    Session session = fixture::session();
    session.workload.model_name = "a<b>&\"c\x01";
    check_approved("session.svg", session_svg(session));
    session.verdict.reset();
    session.state = SessionState::aborted;
    session.windows.resize(30);
    CHECK_THAT(session_svg(session), Catch::Contains("no verdict: the session is aborted") && Catch::Contains("<circle"));
    session.windows.clear();
    CHECK_THAT(session_svg(session), Catch::Contains("no round is finished"));
    // All times equal: an axis of no length would divide by zero.
    session = fixture::session();
    for (Window& window : session.windows) window = session.windows.front();
    CHECK_THAT(session_svg(session), !Catch::Contains("n/a"));
}

TEST_CASE("format: numbers become text in one way") {
    CHECK(fixed_text(1.005, 1) == "1.0");
    CHECK(fixed_text(-0.0004, 2) == "0.00");
    CHECK(fixed_text(-0.006, 2) == "-0.01");
    CHECK(fixed_text(std::numeric_limits<double>::quiet_NaN(), 2) == "n/a");
    CHECK(fixed_text(std::numeric_limits<double>::infinity(), 2) == "n/a");
    CHECK(fixed_text(1e300, 2).size() == 304);
    CHECK(ms_text(18.8334) == "18.833");
    CHECK(ms_text(0.0188334) == "0.018833");
    CHECK(ratio_text(1.14763) == "1.1476");
    CHECK(log_ratio_text(std::log(1.14763)) == "1.1476");
    CHECK(percent_text(12.864, 1) == "12.9 %");
    CHECK(confidence_text(0.95) == "95 %");
    CHECK(confidence_text(0.995) == "99.5 %");
    CHECK(count_text(1, "round") == "1 round");
    CHECK(count_text(0, "round") == "0 rounds");
    CHECK(duration_text(0.4) == "0 s");
    CHECK(duration_text(59.6) == "1 min 00 s");
    CHECK(duration_text(3905) == "1 h 05 min");
    CHECK(duration_text(-1) == "n/a");
    CHECK(short_hash(fixture::hash('a')) == "aaaaaaaaaaaa");
    CHECK(short_hash("") == "-");
    CHECK(interval_text(Interval{0.0, -0.01, 0.01, 0.95, 0.01, 6}) == "1.0000 [0.9900, 1.0101]");
    CHECK(interval_text(Interval{0.0, 0.0, 0.0, 0.95, 0.0, 1}) == "1.0000");
    CHECK(interval_text(Interval{}) == "n/a");
}

TEST_CASE("layout: wraps, breaks long words, disarms control characters, counts code points") {
    const std::string text = wrapped("  label  ", std::string(300, 'x') + " and " + std::string(90, 'y') + " " + std::string(40, 'z'));
    check_layout(text);
    CHECK(lines_of(text).size() == 5);
    CHECK(lines_of(text)[1].substr(0, 10) == "         x");
    CHECK(wrapped("a ", "") == "a\n");
    CHECK(printable("a\x1b[31mb\n") == "a?[31mb?");
    CHECK(columns_of("\xc3\xa9t\xc3\xa9") == 3);
    Table table;
    table.add_column("name", Align::left);
    table.add_column("n", Align::right);
    table.add_row({"\xc3\xa9", "7"});
    table.add_row({"long name", "12"});
    CHECK(table.text() == "  name        n\n  \xc3\xa9           7\n  long name  12\n");
    CHECK_THROWS_AS(table.add_row({"one"}), std::invalid_argument);
}

TEST_CASE("round_rows: complete rounds only, super-rounds as means") {
    Session session = fixture::session();
    CHECK(round_rows(session.windows, RoundDetail::all).size() == 72);
    const std::vector<RoundRow> means = round_rows(session.windows, RoundDetail::super_rounds);
    REQUIRE(means.size() == 12);
    const std::vector<RoundRow> rounds = round_rows(session.windows, RoundDetail::all);
    double base = 0.0;
    double log_ratio = 0.0;
    for (std::size_t i = 0; i < 6; ++i) {
        base += rounds[i].ms[0] / 6.0;
        log_ratio += std::log(rounds[i].ms[0] / rounds[i].ms[2]) / 6.0;
    }
    CHECK(means[0].ms[0] == Approx(base));
    CHECK(means[0].ratio == Approx(std::exp(log_ratio)));
    CHECK(means[0].rounds == 6);
    session.windows.resize(18 + 3 + 2);  // a super-round, a round, and two windows of the next
    CHECK(round_rows(session.windows, RoundDetail::all).size() == 7);
    CHECK(round_rows(session.windows, RoundDetail::super_rounds).back().rounds == 1);
    CHECK(round_table({}, RoundDetail::all).empty());
}

TEST_CASE("session report: sealed, by super-round and by round") {
    const Session session = fixture::session();
    REQUIRE(session.verdict->kind == VerdictKind::faster);
    check_report("session.txt", session_text(session, options));
    check_report("session_all_rounds.txt", session_text(session, {options.database_path, RoundDetail::all}));
}

TEST_CASE("session report: a running and an aborted session have no verdict") {
    for (const SessionState state : {SessionState::running, SessionState::aborted}) {
        Session session = fixture::unfinished(state, 40);
        const std::string text = session_text(session, options);
        check_report("session_" + std::string(name_of(state)) + ".txt", text);
        CHECK_THAT(text, Catch::Contains("no verdict") && Catch::Contains("13 of 72 planned rounds"));
        session.verdict = fixture::session().verdict;  // even if a record holds one
        const std::string with_verdict = session_text(session, options);
        CHECK(with_verdict == text);
        CHECK(session_json(session, "db").at("result").is_null());
    }
    CHECK_THAT(session_text(fixture::unfinished(SessionState::running, 0), options), Catch::Contains("none is finished"));
}

TEST_CASE("session report: one replicate is conditional on placement") {
    Session session = fixture::session();
    session.verdict->estimate.candidate.replicates = 1;
    session.verdict->kind = VerdictKind::undecided;
    CHECK_THAT(session_text(session, options), Catch::Contains("conditional on placement"));
    const nlohmann::json json = session_json(session, "db");
    CHECK(json.at("result").at("candidate").at("lo").is_null());
    CHECK(json.at("result").at("candidate").at("ratio").is_number());
}

TEST_CASE("session report: long and hostile names stay inside the page") {
    Session session = fixture::session();
    session.host = std::string(200, 'h');
    session.device = "gpu \x1b[2J" + std::string(150, 'd');
    session.plan.experiment = std::string(130, 'e');
    session.verdict->reasons.push_back("LONG: " + std::string(400, 'r'));
    const std::string text = session_text(session, {std::string(300, '/'), RoundDetail::all});
    check_layout(text);
    CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("session JSON: the whole record and the ratios") {
    const Session session = fixture::session();
    const nlohmann::json json = session_json(session, "kestrel.db");
    CHECK(json.at("format") == 1);
    CHECK(json.at("kind") == "session");
    CHECK(json.at("database") == "kestrel.db");
    CHECK(json.at("finished_rounds") == 72);
    CHECK(json.at("result").at("verdict") == "FASTER");
    CHECK(json.at("result").at("reasons").size() == session.verdict->reasons.size());
    const nlohmann::json& candidate = json.at("result").at("candidate");
    CHECK(candidate.at("ratio").get<double>() == Approx(1.1475).epsilon(1e-3));
    CHECK(candidate.at("lo") < candidate.at("ratio"));
    CHECK(candidate.at("ratio") < candidate.at("hi"));
    const auto back = json.at("session").get<Session>();
    CHECK(nlohmann::json(back) == nlohmann::json(session));
}

TEST_CASE("list and history: ratios only") {
    const std::vector<SessionSummary> all = fixture::summaries();
    check_report("list.txt", list_text(all));
    const std::string text = history_text(all);
    check_report("history.txt", text);
    CHECK(text.find("33333333") > text.find("22222222"));
    CHECK(text.find("22222222") > text.find("11111111"));
    CHECK(list_text({}) == "No sessions.\n");
    CHECK(history_text({}) == "No sessions.\n");
}

TEST_CASE("list and history JSON: grouped, ratios beside the records, none for an aborted session") {
    const nlohmann::json history = history_json(fixture::summaries());
    CHECK(history.at("format") == 1);
    REQUIRE(history.at("groups").size() == 2);
    const nlohmann::json& sessions = history.at("groups").at(1).at("sessions");
    REQUIRE(sessions.size() == 4);
    CHECK(history.at("groups").at(1).at("host") == "bench-03");
    CHECK(sessions.at(0).at("uuid") == "11111111-0000-4000-8000-000000000000");
    CHECK(sessions.at(0).at("ratio").at("ratio").get<double>() == Approx(std::exp(0.1375)));
    CHECK(sessions.at(0).at("ratio").at("lo").get<double>() == Approx(std::exp(0.1355)));
    CHECK(sessions.at(3).at("ratio").is_null());
    CHECK(history.dump().find("_ms") == std::string::npos);  // no time of any session
    const nlohmann::json list = list_json(fixture::summaries());
    CHECK(list.at("sessions").size() == 5);
    CHECK(list.at("sessions").at(0).at("uuid") == "33333333-0000-4000-8000-000000000000");
}

TEST_CASE("diff: identical, one place, several") {
    const std::string none = diff_text(base_side, base_side, {Place{}});
    check_layout(none);
    CHECK_THAT(none, Catch::Contains("Identical"));
    check_report("diff_one.txt", diff_text(base_side, candidate_side, {define_place}));
    check_report("diff_many.txt", diff_text(base_side, candidate_side, {define_place, flag_place}));
    CHECK(diff_json(base_side, base_side, {}).at("answer") == "identical");
    CHECK(diff_json(base_side, candidate_side, {define_place}).at("answer") == "one place");
    check_approved("diff_many.json", diff_json(base_side, candidate_side, {define_place, flag_place}).dump(2) + "\n");
}

TEST_CASE("compare: refused, with both sessions, all that differs, and what to run") {
    const Session first = fixture::session();
    const Session second = fixture::later_session();
    const std::string text = compare_text(first, second);
    check_report("compare.txt", text);
    check_approved("compare.json", compare_json(first, second).dump(2) + "\n");
    for (const char* ms : {"18.8", "16.4", "ms/token"}) CHECK(text.find(ms) == std::string::npos);
    const auto names = [](const std::vector<SessionDifference>& differences) {
        std::vector<std::string> result;
        for (const SessionDifference& d : differences) result.push_back(d.what);
        return result;
    };
    CHECK(names(session_differences(first, second)) == std::vector<std::string>{"date", "host", "base artifact", "control artifact",
                                                                                "candidate artifact", "threads", "workload",
                                                                                "environment: kernel", "environment: numa.nodes"});
    CHECK(session_differences(first, first).empty());
}

TEST_CASE("compare: every field that could explain a difference is looked at") {
    using Change = void (*)(Session&);
    const std::vector<std::pair<Change, const char*>> cases{
        {[](Session& s) { s.started_at = "x"; }, "date"},
        {[](Session& s) { s.host = "x"; }, "host"},
        {[](Session& s) { s.device = "x"; }, "device"},
        {[](Session& s) { s.arms[0].artifact_sha256 = "x"; }, "base artifact"},
        {[](Session& s) { s.arms[2].switches.clear(); }, "candidate switches"},
        {[](Session& s) { s.workload.model_name = "x"; }, "model"},
        {[](Session& s) { s.workload.weights_digest = "x"; }, "weights"},
        {[](Session& s) { s.workload.layout_id = "x"; }, "weight layout"},
        {[](Session& s) { s.workload.launch_mode = "graph"; }, "launch mode"},
        {[](Session& s) { s.workload.layers = 1; }, "layers"},
        {[](Session& s) { s.workload.position = 1; }, "position"},
        {[](Session& s) { s.workload.tokens.push_back(1); }, "token sequence"},
        {[](Session& s) { s.environment.facts.erase("kernel"); }, "environment: kernel"},
        {[](Session& s) { s.runner_version = "x"; }, "runner"},
        {[](Session& s) { s.plan.experiment_version = 2; }, "experiment"},
    };
    const Session first = fixture::session();
    for (const auto& [change, what] : cases) {
        Session second = first;
        change(second);
        const std::vector<SessionDifference> differences = session_differences(first, second);
        REQUIRE(differences.size() == 1);
        CHECK(differences[0].what == what);
        CHECK(differences[0].first != differences[0].second);
    }
    Session long_tokens = first;
    long_tokens.workload.tokens.assign(20, 1);
    Session differs_late = long_tokens;
    differs_late.workload.tokens.back() = 2;
    CHECK(session_differences(long_tokens, differs_late).size() == 1);
}

TEST_CASE("compare: what to run instead fits the case") {
    const Session first = fixture::session();
    Session same_builds = first;
    same_builds.uuid = "another";
    CHECK_THAT(compare_text(first, first), Catch::Contains("the same session") && Catch::Contains("kestrel-ab show " + first.uuid));
    CHECK_THAT(compare_text(first, same_builds), Catch::Contains("kestrel-ab history gdn-register"));
    CHECK_THAT(compare_text(first, fixture::later_session()), Catch::Contains("kestrel-ab run --base artifacts/aaaa"));
}

TEST_CASE("doctor: what is there, what is missing, what to do") {
    check_report("doctor.txt", doctor_text(doctor_items()));
    check_approved("doctor.json", doctor_json(doctor_items()).dump(2) + "\n");
    check_layout(doctor_text({{std::string(200, 'n'), DoctorStatus::missing, std::string(300, 'd'), std::string(300, 'a')}}));
    check_layout(doctor_text({}));
}

TEST_CASE("progress: rounds done, ratio so far, time left, and no verdict") {
    CHECK(progress_line({2, 6, 7, 24, 1.14763, 45.0, 45.0, 0}) == "replicate 2/6  round 7/24  ratio so far 1.1476  about 45 s left");
    CHECK(progress_line({8, 18, 7, 24, 1.14763, 45.0, 20.0, 1}) ==
          "replicate 8/18  round 7/24  ratio so far 1.1476  undecided after 1 look  next look in about 20 s, at most 45 s left");
    CHECK(progress_line({1, 6, 0, 24, {}, {}, {}, 0}) == "replicate 1/6  round 0/24");
}
