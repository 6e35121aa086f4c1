// What the store takes is what it gives back; records as JSON; seals.
#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <regex>
#include <set>

#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"
#include "store/codec.hpp"
#include "store/repository.hpp"
#include "store/seal.hpp"
#include "store/stamp.hpp"

namespace {

using namespace kestrel;

struct Directory {
    std::filesystem::path path;
    Directory() {
        std::string name = (std::filesystem::temp_directory_path() / "kestrel-store-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~Directory() { std::filesystem::remove_all(path); }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    [[nodiscard]] std::string database() const { return (path / "history.db").string(); }
};

Artifact artifact_of(char digit, const std::string& name) {
    return {std::string(64, digit),        12345 + digit, "kestrel_cpu", "/seen/" + name, "/stored/" + name, store_sha256_hex(name),
            "{\"made\":\"" + name + "\"}", "0123abcd",    digit == 'b'};
}

Plan rich_plan() {
    Plan plan;
    plan.experiment = "gdn-register";
    plan.experiment_version = 3;
    plan.seed = std::numeric_limits<std::uint64_t>::max() - 1;
    plan.replicates = 2;
    plan.super_rounds = 1;
    plan.margin = 0.1 + 0.2;
    plan.output_rule = "tolerance 1e-5";
    plan.load_orders = {{ArmRole::candidate, ArmRole::base, ArmRole::control}, {ArmRole::base, ArmRole::control, ArmRole::candidate}};
    std::array<ArmRole, 18> schedule{};
    for (std::size_t i = 0; i < schedule.size(); ++i) schedule[i] = static_cast<ArmRole>((i / 3 + i) % 3);
    plan.schedules = {{schedule}, {schedule}};
    plan.paddings = {0, 4096};
    plan.sha256 = store_sha256_hex(canonical_json(plan));
    return plan;
}

// A session as it is before its first round.
Session rich_session() {
    Session session;
    session.uuid = new_uuid();
    session.started_at = "2025-01-31T23:59:59.123Z";
    session.host = "perf-1";
    session.device = "cpu: Example \xc2\xb5-arch";
    session.runner_version = "0.1.0";
    session.place = {PlaceKind::runtime_switch, "VLLM_CUDA_GDN_DELTA", "ref", "(unset)", {"gdn.o", "it's \"quoted\".o"}};
    session.plan = rich_plan();
    session.workload = {std::string(64, '1'), "m.toml", "/models/m.toml", "w", "rows.v1", "cpu", 64, 48, 16, 1000, 2, 7, {5, 4, 3, 2}};
    session.environment = {std::string(64, '2'), {{"cpu.model", "Example"}, {"governor", ""}}};
    session.artifacts = {artifact_of('a', "base.so"), artifact_of('b', "candidate.so")};
    session.arms[0] = {ArmRole::base, std::string(64, 'a'), {{"S", "ref"}}, {{"S", "ref"}, {"T", ""}}, true};
    session.arms[1] = {ArmRole::control, std::string(64, 'a'), {{"S", "ref"}}, {{"S", "ref"}}, true};
    session.arms[2] = {ArmRole::candidate, std::string(64, 'b'), {}, {{"S", "reg"}}, false};
    return session;
}

std::vector<Window> round_of(int replicate, int round) {
    std::vector<Window> windows;
    for (int slot = 0; slot < 3; ++slot) {
        windows.push_back({replicate,
                           0,
                           round,
                           slot,
                           static_cast<ArmRole>((slot + round) % 3),
                           1000 * round,
                           30000000 + slot,
                           {0, 127, 128, 9999999, std::numeric_limits<std::int64_t>::max()},
                           store_sha256_hex(std::to_string(round))});
    }
    return windows;
}

Verdict rich_verdict() {
    Verdict verdict;
    verdict.kind = VerdictKind::faster;
    verdict.reasons = {"TAIL: the p99 ratio disagrees", "CONTROL_BIAS: \xe2\x89\xa0 0"};
    verdict.margin = 0.01;
    verdict.delta = std::log1p(0.01);
    verdict.estimate.candidate = {0.05, 0.04, 0.06, 0.95, 0.001, 2};
    verdict.estimate.control = {-1e-300, -std::numeric_limits<double>::infinity(), 1.0 / 3.0, 0.99, 0.002, 2};
    verdict.estimate.replicate_d = {0.051, 0.049};
    verdict.estimate.replicate_control_d = {0.0, -0.0001};
    for (int arm = 0; arm < arm_count; ++arm) {
        verdict.estimate.arms[static_cast<std::size_t>(arm)] = {static_cast<ArmRole>(arm), 6, 1.5, 1.4, 1.3, 1.9, 46.2, 2.5, 666.6};
    }
    verdict.estimate.mean_ratio = 1.051;
    return verdict;
}

std::vector<Reading> readings_of(int replicate, int round) {
    std::vector<Reading> readings;
    if (round == 0) readings.push_back({replicate, -1, -1, 17, {}});
    readings.push_back({replicate,
                        0,
                        round,
                        1'000'000'000'000 + round,
                        {{"cpu", {{"busy_s", 12345.67}, {"steal_s", 0.0}}}, {"gpu", {{"sm_mhz", 1980.0}}}}});
    return readings;
}

// Runs the whole life of `session` through the store and keeps the same in `session`.
void live(Store& store, Session& session) {
    store.begin_session(session);
    for (int index = 0; index < 2; ++index) {
        Replicate replicate{index, 4000 + index, session.plan.load_orders[static_cast<std::size_t>(index)], "running", "", {}, 0};
        store.begin_replicate(session.uuid, replicate);
        for (int round = 0; round < 2; ++round) {
            const auto windows = round_of(index, round);
            const auto readings = readings_of(index, round);
            store.add_round(session.uuid, windows, readings);
            session.readings.insert(session.readings.end(), readings.begin(), readings.end());
            session.windows.insert(session.windows.end(), windows.begin(), windows.end());
        }
        replicate.status = index == 0 ? "finished" : "crashed";
        replicate.detail = index == 0 ? "" : "signal 11; last message 'x'";
        replicate.state_digest = {"s0", "s1", "s2"};
        replicate.distinct_tokens = 9;
        store.finish_replicate(session.uuid, replicate);
        session.replicates.push_back(replicate);
    }
    store.add_event(session.uuid, "rehash", "ok");
    session.verdict = rich_verdict();
    session.seal_sha256 = store.seal(session.uuid, *session.verdict);
    session.state = SessionState::sealed;
}

int exec(const std::string& database, const std::string& sql) {
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open(database.c_str(), &handle) == SQLITE_OK);
    const int code = sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr);
    sqlite3_close(handle);
    return code;
}

}  // namespace

TEST_CASE("a session comes back from the store as it went in", "[store]") {
    const Directory directory;
    Session expected = rich_session();
    {
        Store store(directory.database());
        live(store, expected);
    }
    Store store(directory.database(), OpenMode::read_only);
    const Session loaded = store.load_session(expected.uuid);
    REQUIRE(loaded.events.size() == 3);
    CHECK(loaded.events[0].kind == "opened");
    CHECK(loaded.events[1].detail == "ok");
    CHECK(loaded.events[2].kind == "sealed");
    CHECK(loaded.ended_at == loaded.events[2].at);
    expected.events = loaded.events;
    expected.ended_at = loaded.ended_at;
    CHECK(dump_json(nlohmann::json(loaded)) == dump_json(nlohmann::json(expected)));
    CHECK(loaded.readings == expected.readings);
    CHECK(std::isinf(loaded.verdict->estimate.control.lo));
    CHECK(store.verify_seal(expected.uuid.substr(0, 8)));
    CHECK(store.compute_seal(expected.uuid) == expected.seal_sha256);
    CHECK(store.verify().empty());
}

TEST_CASE("arms may be added once their effective switches are known", "[store]") {
    const Directory directory;
    Store store(directory.database());
    Session session = rich_session();
    const Arm candidate = session.arms[2];
    session.arms[2] = Arm{};
    store.begin_session(session);
    CHECK(store.load_session(session.uuid).arms[2].artifact_sha256.empty());
    CHECK(store.load_session(session.uuid).arms[2].role == ArmRole::candidate);
    CHECK_THROWS_WITH(store.seal(session.uuid, rich_verdict()), Catch::Contains("both arms must belong to this one session"));
    store.add_arm(session.uuid, candidate);
    CHECK(nlohmann::json(store.load_session(session.uuid).arms[2]) == nlohmann::json(candidate));
    Arm unknown = candidate;
    unknown.artifact_sha256 = std::string(64, 'f');
    CHECK_THROWS_WITH(store.add_arm(session.uuid, unknown), Catch::Contains("not registered"));
}

TEST_CASE("sessions share artifacts, but an artifact cannot change its content", "[store]") {
    const Directory directory;
    Store store(directory.database());
    Session first = rich_session();
    live(store, first);
    Session second = rich_session();
    second.artifacts[0].seen_path = "/elsewhere";
    second.environment.facts["load"] = "volatile, and not part of the hash";
    live(store, second);
    CHECK(store.load_session(second.uuid).artifacts[0].seen_path == "/elsewhere");
    CHECK(store.load_session(first.uuid).artifacts[0].seen_path == "/seen/base.so");
    CHECK(store.load_session(first.uuid).environment.facts.count("load") == 0);
    Session third = rich_session();
    third.artifacts[0].bytes += 1;
    CHECK_THROWS_WITH(store.begin_session(third), Catch::Contains("with other content"));
    CHECK_THROWS_WITH(store.load_session(third.uuid), Catch::Contains("no session"));  // nothing of it was kept
    Session planless = rich_session();
    planless.plan.seed ^= 1;
    CHECK_THROWS_WITH(store.begin_session(planless), Catch::Contains("plan's hash"));
}

TEST_CASE("list and prefixes", "[store]") {
    const Directory directory;
    Store store(directory.database());
    Session old = rich_session();
    old.uuid = "aaaaaaaa-0000-4000-8000-000000000001";
    live(store, old);
    Session young = rich_session();
    young.uuid = "aaaaaaaa-0000-4000-8000-000000000002";
    young.started_at = "2025-02-01T00:00:00.000Z";
    young.plan.experiment = "f32-gemv";
    young.plan.sha256 = store_sha256_hex(canonical_json(young.plan));
    store.begin_session(young);

    const auto all = store.list_sessions();
    REQUIRE(all.size() == 2);
    CHECK(all[0].uuid == young.uuid);
    CHECK(!all[0].verdict);
    CHECK(all[0].margin == young.plan.margin);
    CHECK(all[1].verdict == VerdictKind::faster);
    CHECK(all[1].candidate->lo == 0.04);
    CHECK(all[1].finished_replicates == 1);
    CHECK(all[1].windows == 12);
    CHECK(all[1].base_sha256 == std::string(64, 'a'));
    CHECK(all[1].candidate_sha256 == std::string(64, 'b'));
    CHECK(all[1].model_name == "m.toml");
    CHECK(store.list_sessions({"f32-gemv", {}, {}, 0}).size() == 1);
    CHECK(store.list_sessions({"no-such", {}, {}, 0}).empty());
    CHECK(store.list_sessions({{}, {}, {}, 1}).at(0).uuid == young.uuid);
    CHECK(store.running_sessions().at(0).uuid == young.uuid);

    CHECK(store.resolve(old.uuid) == old.uuid);
    for (const char* wrong : {"aaaaaaaa", "bbbb", "", "%", "a' OR 1=1", "AAAAAAAA-0000-4000-8000-000000000001"}) {
        try {
            (void)store.resolve(wrong);
            FAIL("found a session for '" << wrong << "'");
        } catch (const Error& problem) {
            CHECK(problem.code() == ExitCode::usage);
        }
    }
    CHECK_THROWS_WITH(store.resolve("aaaa"), Catch::Contains(old.uuid) && Catch::Contains(young.uuid));
    CHECK_THROWS_WITH(store.resolve("bbbb"), Catch::Contains(directory.database()));
}

TEST_CASE("a seal notices a change that the triggers could not prevent", "[store]") {
    const Directory directory;
    Session session = rich_session();
    Store store(directory.database());
    live(store, session);
    const std::string change = GENERATE(
        as<std::string>{}, "DROP TRIGGER round_no_update; UPDATE round SET window_ns = window_ns - 1 WHERE slot = 2",
        "DROP TRIGGER round_no_delete; DELETE FROM round WHERE replicate = 1 AND round = 1",
        "DROP TRIGGER telemetry_no_update; UPDATE telemetry SET sources = '{}' WHERE round = 1",
        "DROP TRIGGER telemetry_no_delete; DELETE FROM telemetry", "DROP TRIGGER verdict_no_update; UPDATE verdict SET kind = 'SAME'",
        "DROP TRIGGER comparison_no_update; UPDATE comparison SET ratio = ratio * 1.0000001",
        "DROP TRIGGER artifact_no_update; UPDATE artifact SET sha256 = replace(sha256, 'a', 'c')",
        "DROP TRIGGER output_no_update; UPDATE output SET digest = digest || '0' WHERE id = 1",
        "DROP TRIGGER session_only_ends; UPDATE session SET ended_at = '2020-01-01T00:00:00.000Z'",
        "DROP TRIGGER session_only_ends; UPDATE session SET plan = replace(plan, '4096', '4097')",
        "DROP TRIGGER event_no_update; UPDATE event SET detail = 'bad' WHERE kind = 'rehash'");
    REQUIRE(store.verify_seal(session.uuid));
    REQUIRE(exec(directory.database(), change) == SQLITE_OK);
    CHECK_FALSE(store.verify_seal(session.uuid));
    CHECK(store.verify().size() == 1);
}

TEST_CASE("only a sealed session has a seal", "[store]") {
    const Directory directory;
    Store store(directory.database());
    const Session session = rich_session();
    store.begin_session(session);
    CHECK_THROWS_WITH(store.verify_seal(session.uuid), Catch::Contains("running"));
    store.abort(session.uuid, "interrupted");
    CHECK_THROWS_WITH(store.verify_seal(session.uuid), Catch::Contains("aborted"));
}

TEST_CASE("stamps and token times", "[store]") {
    const std::regex version_4("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        const std::string uuid = new_uuid();
        CHECK(std::regex_match(uuid, version_4));
        CHECK(is_uuid(uuid));
        seen.insert(uuid);
    }
    CHECK(seen.size() == 1000);
    CHECK(std::regex_match(utc_now(), std::regex("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z")));
    CHECK(encode_token_ns({0, 127, 128, 300}) == std::string("\x00\x7f\x80\x01\xac\x02", 6));
    CHECK_THROWS_AS(encode_token_ns({-1}), Error);
    CHECK_THROWS_AS(decode_token_ns("\x80"), Error);
    CHECK_THROWS_AS(decode_token_ns(std::string(10, '\xff')), Error);
    CHECK(store_sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
