// Databases of earlier schemas: read as they are, upgraded by whoever writes, and their seals stay valid.
#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "store/migrations.hpp"
#include "store/repository.hpp"
#include "store/seal.hpp"
#include "store/stamp.hpp"

namespace {

using namespace kestrel;

constexpr const char* sealed_uuid = "11111111-0000-4000-8000-000000000001";
constexpr const char* aborted_uuid = "11111111-0000-4000-8000-000000000002";
// As the program that made the file printed it.
constexpr const char* sealed_with = "44c40113c40b0a5d27e4a363c21320c2133f47568e6ae53f300b78d22e461e3d";

int exec(const std::string& database, const std::string& sql) {
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open(database.c_str(), &handle) == SQLITE_OK);
    const int code = sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr);
    sqlite3_close(handle);
    return code;
}

struct OldDatabase {
    std::filesystem::path directory;
    OldDatabase() {
        std::string name = (std::filesystem::temp_directory_path() / "kestrel-migration-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        directory = name;
        std::ifstream in(std::string(KESTREL_FIXTURES) + "/store/schema_v1.sql", std::ios::binary);
        REQUIRE(in);
        REQUIRE(exec(path(), std::string(std::istreambuf_iterator<char>(in), {})) == SQLITE_OK);
    }
    ~OldDatabase() { std::filesystem::remove_all(directory); }
    OldDatabase(const OldDatabase&) = delete;
    OldDatabase& operator=(const OldDatabase&) = delete;
    [[nodiscard]] std::string path() const { return (directory / "history.db").string(); }
};

Session new_session() {
    Session session;
    session.uuid = new_uuid();
    session.plan.sha256 = store_sha256_hex(canonical_json(session.plan));
    session.workload.sha256 = std::string(64, '1');
    session.environment.sha256 = std::string(64, '2');
    Artifact artifact;
    artifact.sha256 = std::string(64, 'c');
    artifact.manifest_sha256 = std::string(64, 'd');
    session.artifacts = {artifact};
    for (int role = 0; role < arm_count; ++role) {
        session.arms[static_cast<std::size_t>(role)] = {static_cast<ArmRole>(role), artifact.sha256, {}, {}, false};
    }
    return session;
}

}  // namespace

TEST_CASE("a database of the first schema can be read before it is upgraded", "[store][migration]") {
    const OldDatabase old;
    Store reader(old.path(), OpenMode::read_only);
    CHECK(reader.list_sessions().size() == 2);
    const Session session = reader.load_session(sealed_uuid);
    CHECK(session.seal_sha256 == sealed_with);
    CHECK(session.windows.size() == 12);
    CHECK(session.readings.empty());
    CHECK_FALSE(nlohmann::json(session).contains("readings"));  // it reads as it did
    CHECK(reader.verify_seal(sealed_uuid));
    CHECK(reader.verify().empty());
    CHECK_THROWS_AS(reader.add_event(aborted_uuid, "x", ""), Error);
    Connection connection(old.path(), OpenMode::read_only);
    CHECK(connection.scalar("PRAGMA user_version") == 1);
}

TEST_CASE("upgrading keeps old sessions and their seals, and new ones hold telemetry", "[store][migration]") {
    const OldDatabase old;
    std::string before;
    {
        Store reader(old.path(), OpenMode::read_only);
        before = dump_json(nlohmann::json(reader.load_session(sealed_uuid)));
    }
    Store store(old.path());
    Connection connection(old.path(), OpenMode::read_only);
    CHECK(connection.scalar("PRAGMA user_version") == schema_version());
    CHECK(dump_json(nlohmann::json(store.load_session(sealed_uuid))) == before);
    CHECK(store.load_session(aborted_uuid).state == SessionState::aborted);
    CHECK(store.compute_seal(sealed_uuid) == sealed_with);
    CHECK(store.verify_seal(sealed_uuid));

    const Session session = new_session();
    store.begin_session(session);
    Replicate replicate;
    store.begin_replicate(session.uuid, replicate);
    std::vector<Window> windows;
    for (int slot = 0; slot < 3; ++slot) windows.push_back({0, 0, 0, slot, static_cast<ArmRole>(slot), 0, 1000, {1000}, "digest"});
    const std::vector<Reading> readings{{0, -1, -1, 0, {}}, {0, 0, 0, 9, {{"pressure", {{"some_us", 12.0}}}}}};
    std::vector<Reading> strangers = readings;
    strangers[1].replicate = 1;
    CHECK_THROWS_AS(store.add_round(session.uuid, windows, strangers), std::invalid_argument);
    store.add_round(session.uuid, windows, readings);
    replicate.status = "finished";
    store.finish_replicate(session.uuid, replicate);
    (void)store.seal(session.uuid, Verdict{});
    CHECK(store.load_session(session.uuid).readings == readings);
    CHECK(store.verify().empty());
}

TEST_CASE("telemetry cannot be slipped into a session that was sealed without", "[store][migration]") {
    const OldDatabase old;
    Store store(old.path());
    REQUIRE(store.verify_seal(sealed_uuid));
    const std::string insert = "INSERT INTO telemetry VALUES(1, 0, 0, 0, 5, '{}')";
    CHECK(exec(old.path(), insert) != SQLITE_OK);
    REQUIRE(exec(old.path(), "DROP TRIGGER telemetry_needs_running_session; DROP TRIGGER telemetry_needs_running_replicate; " + insert) ==
            SQLITE_OK);
    CHECK_FALSE(store.verify_seal(sealed_uuid));
}
