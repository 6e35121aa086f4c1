// Attacks with plain SQL through a fresh connection with SQLite's default settings, as a person in the sqlite3 shell has:
// no foreign keys, no recursive triggers. None may change what is recorded or add to a session that has ended.
#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "runner/record/json.hpp"
#include "store/repository.hpp"
#include "store/seal.hpp"
#include "store/stamp.hpp"

namespace {

using namespace kestrel;

class Raw {
  public:
    explicit Raw(const std::string& path) { REQUIRE(sqlite3_open(path.c_str(), &handle_) == SQLITE_OK); }
    ~Raw() { sqlite3_close(handle_); }
    Raw(const Raw&) = delete;
    Raw& operator=(const Raw&) = delete;

    // "" if the statements ran, else SQLite's message.
    std::string exec(const std::string& sql) {
        const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
        return code == SQLITE_OK ? "" : sqlite3_errmsg(handle_);
    }
    std::vector<std::string> column(const std::string& sql) {
        sqlite3_stmt* statement = nullptr;
        REQUIRE(sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK);
        std::vector<std::string> values;
        while (sqlite3_step(statement) == SQLITE_ROW) {
            const auto* text = sqlite3_column_text(statement, 0);
            values.emplace_back(text == nullptr ? "NULL" : reinterpret_cast<const char*>(text));
        }
        sqlite3_finalize(statement);
        return values;
    }
    std::vector<std::string> tables() { return column("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"); }
    std::vector<std::string> columns_of(const std::string& table) { return column("SELECT name FROM pragma_table_info('" + table + "')"); }

    // Everything in the database, in an order that does not depend on the keys.
    std::string dump() {
        std::string text;
        for (const auto& table : tables()) {
            std::string row;
            for (const auto& name : columns_of(table)) row += (row.empty() ? "" : " || '|' || ") + ("quote(" + name + ")");
            for (const auto& line : column("SELECT " + row + " FROM " + table + " ORDER BY 1")) text += table + ": " + line + "\n";
        }
        return text;
    }

  private:
    sqlite3* handle_ = nullptr;
};

Session small_session() {
    Session session;
    session.uuid = new_uuid();
    session.plan.sha256 = store_sha256_hex(canonical_json(session.plan));
    session.workload.sha256 = std::string(64, '1');
    session.environment.sha256 = std::string(64, '2');
    Artifact artifact;
    artifact.sha256 = std::string(64, 'a');
    artifact.manifest_sha256 = std::string(64, 'b');
    session.artifacts = {artifact};
    for (int role = 0; role < arm_count; ++role) {
        session.arms[static_cast<std::size_t>(role)] = {static_cast<ArmRole>(role), artifact.sha256, {}, {}, false};
    }
    return session;
}

std::vector<Window> windows_of(int round) {
    std::vector<Window> windows;
    for (int slot = 0; slot < 3; ++slot) windows.push_back({0, 0, round, slot, static_cast<ArmRole>(slot), 0, 1000, {500, 500}, "digest"});
    return windows;
}

// A database with a sealed session (key 1), an aborted one (2) and a running one (3), each with a replicate and a round; the
// running one lacks its candidate arm and its replicate still runs.
struct Attacked {
    std::filesystem::path directory;
    std::string sealed, aborted, running;

    Attacked() {
        std::string name = (std::filesystem::temp_directory_path() / "kestrel-attack-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        directory = name;
        Store store(database());
        sealed = start(store, small_session(), true);
        (void)store.seal(sealed, Verdict{});
        aborted = start(store, small_session(), true);
        store.abort(aborted, "test");
        Session partial = small_session();
        partial.arms[2] = Arm{};
        running = start(store, partial, false);
    }
    ~Attacked() { std::filesystem::remove_all(directory); }
    Attacked(const Attacked&) = delete;
    Attacked& operator=(const Attacked&) = delete;
    [[nodiscard]] std::string database() const { return (directory / "history.db").string(); }

    static std::string start(Store& store, const Session& session, bool whole) {
        store.begin_session(session);
        Replicate replicate;
        replicate.status = "running";
        store.begin_replicate(session.uuid, replicate);
        if (!whole) return session.uuid;
        store.add_round(session.uuid, windows_of(0), {{0, 0, 0, 5, {{"cpu", {{"steal_s", 0.25}}}}}});
        replicate.status = "finished";
        store.finish_replicate(session.uuid, replicate);
        return session.uuid;
    }
};

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

constexpr const char* round_values = " super_round, round, slot, arm, started_ns, window_ns, token_ns, output_id) VALUES";

}  // namespace

TEST_CASE("no table's rows can be changed, removed or replaced", "[store][attack]") {
    const Attacked attacked;
    Raw raw(attacked.database());
    const std::string before = raw.dump();
    const auto tables = raw.tables();
    REQUIRE(tables.size() == 14);
    for (const auto& table : tables) {
        REQUIRE(raw.column("SELECT count(*) FROM " + table).at(0) != "0");  // an empty table would resist everything
        const auto columns = raw.columns_of(table);
        const std::string all = joined(columns);
        std::vector<std::string> attacks = {
            "DELETE FROM " + table,
            "DELETE FROM " + table + " WHERE true",
            "INSERT OR REPLACE INTO " + table + "(" + all + ") SELECT " + all + " FROM " + table,
            "REPLACE INTO " + table + " SELECT * FROM " + table,
            "INSERT INTO " + table + " SELECT * FROM " + table + " WHERE true ON CONFLICT DO UPDATE SET " + columns[0] + " = " + columns[0],
        };
        for (const auto& name : columns) {
            attacks.push_back("UPDATE " + table + " SET " + name + " = " + name);
            attacks.push_back("UPDATE OR REPLACE " + table + " SET " + name + " = (SELECT max(" + name + ") FROM " + table + ")");
        }
        // Keys given as text reach the trigger before SQLite converts them.
        std::string as_text;
        for (const auto& name : columns)
            as_text += (as_text.empty() ? "" : ", ") + (columns[0] == name ? "CAST(" + name + " AS TEXT)" : name);
        attacks.push_back("INSERT OR REPLACE INTO " + table + "(" + all + ") SELECT " + as_text + " FROM " + table);
        for (const auto& attack : attacks) {
            INFO(attack);
            CHECK(raw.exec(attack).find("refused") != std::string::npos);
        }
    }
    CHECK(raw.dump() == before);
    Store store(attacked.database(), OpenMode::read_only);
    CHECK(store.verify().empty());
}

TEST_CASE("an ended session accepts no rows of any kind", "[store][attack]") {
    const Attacked attacked;
    Raw raw(attacked.database());
    const std::string before = raw.dump();
    for (const std::string session : {"1", "2"}) {
        const std::vector<std::string> attacks = {
            "INSERT INTO round(session_id, replicate," + std::string(round_values) + "(" + session +
                ", 0, 0, 5, 0, 'base', 0, 1, x'01', 1)",
            "INSERT INTO replicate VALUES(" + session +
                ", 7, 1, '[\"base\",\"control\",\"candidate\"]', 'running', '', '[\"\",\"\",\"\"]', 0)",
            "INSERT INTO event VALUES(" + session + ", (SELECT count(*) FROM event WHERE session_id = " + session +
                "), 'now', 'rehash', 'ok')",
            "INSERT INTO telemetry VALUES(" + session + ", 0, 0, 1, 6, '{}')",
            "INSERT INTO arm VALUES(" + session + ", 'extra', 1, '[]', '[]', 0)",
            "INSERT INTO registration VALUES(" + session + ", 9, 1, '', '', '', 0)",
            "INSERT INTO comparison(session_id, base_arm, candidate_arm, replicates) VALUES(" + session + ", 'base', 'other', 6)",
            "INSERT INTO verdict(session_id, candidate_arm, kind, reasons, estimate) VALUES(" + session +
                ", 'other', 'FASTER', '[]', '{}')",
        };
        for (const auto& attack : attacks) {
            INFO(attack);
            CHECK(raw.exec(attack).find("refused") != std::string::npos);
        }
        CHECK(raw.exec("UPDATE session SET state = 'running', ended_at = '', seal_sha256 = '' WHERE id = " + session) != "");
        CHECK(raw.exec("UPDATE replicate SET status = 'finished' WHERE session_id = " + session) != "");
    }
    CHECK(raw.dump() == before);
    Store store(attacked.database());
    CHECK_THROWS_WITH(store.add_round(attacked.sealed, windows_of(1)), Catch::Contains("refused"));
    CHECK_THROWS_WITH(store.add_event(attacked.aborted, "late", ""), Catch::Contains("session is not running"));
    CHECK_THROWS_WITH(store.seal(attacked.sealed, Verdict{}), Catch::Contains("refused"));
    CHECK_THROWS_WITH(store.abort(attacked.sealed, "late"), Catch::Contains("session is not running"));
    CHECK(raw.dump() == before);
}

TEST_CASE("a comparison across sessions cannot be written", "[store][attack]") {
    const Attacked attacked;
    Raw raw(attacked.database());
    const std::string before = raw.dump();
    // Both arms are named through one and the same session column.
    const auto arms =
        raw.column("SELECT DISTINCT \"from\" FROM pragma_foreign_key_list('comparison') WHERE \"table\" = 'arm' AND \"to\" = 'session_id'");
    CHECK(arms == std::vector<std::string>{"session_id"});
    CHECK(raw.column("SELECT count(DISTINCT id) FROM pragma_foreign_key_list('comparison') WHERE \"table\" = 'arm'").at(0) == "2");

    // The running session has no candidate; the sealed one has.
    const std::string insert = "INSERT INTO comparison(session_id, base_arm, candidate_arm, replicates, ratio) VALUES";
    CHECK_THAT(raw.exec(insert + "(3, 'base', 'candidate', 6, 1.1)"), Catch::Contains("both arms must belong to this one session"));
    for (const std::string values :
         {"(1, 'base', 'candidate', 6, 1.1)", "(3, 'control', 'candidate', 6, 1.1)", "(3, 'base', '1/candidate', 6, 1.1)",
          "('3', 'base', 'candidate', 6, 1.1)", "(NULL, 'base', 'candidate', 6, 1.1)", "(99, 'base', 'candidate', 6, 1.1)",
          "(3, 'base', NULL, 6, 1.1)", "(3, 'base', 'base', 6, 1.1)", "(3, NULL, 'control', 6, 1.1)"}) {
        INFO(values);
        CHECK(raw.exec(insert + values) != "");
        CHECK(raw.exec("INSERT OR REPLACE" + insert.substr(6) + values) != "");
        CHECK(raw.exec("INSERT OR IGNORE" + insert.substr(6) + values + "; SELECT 1") != "");
    }
    CHECK(raw.exec("UPDATE comparison SET session_id = 3") != "");
    CHECK(raw.exec("UPDATE arm SET session_id = 3 WHERE session_id = 1 AND role = 'candidate'") != "");
    CHECK(
        raw.exec("INSERT INTO verdict(session_id, candidate_arm, kind, reasons, estimate) VALUES(3, 'candidate', 'FASTER', '[]', '{}')") !=
        "");
    CHECK(raw.dump() == before);
    // The refusals above are not refusals of everything: within the session it is accepted.
    CHECK(raw.exec(insert + "(3, 'base', 'control', 6, 1.0)") == "");
}

TEST_CASE("a running session can only grow, and end in order", "[store][attack]") {
    const Attacked attacked;
    Raw raw(attacked.database());
    const std::string before = raw.dump();
    const std::string seal = "'" + std::string(64, '0') + "'";
    const std::vector<std::string> attacks = {
        "UPDATE session SET plan = '{}' WHERE id = 3",
        "UPDATE session SET place_name = 'x' WHERE id = 3",
        "UPDATE session SET rowid = 77 WHERE id = 3",
        "UPDATE session SET state = 'sealed', ended_at = 'now', seal_sha256 = " + seal + " WHERE id = 3",
        "UPDATE session SET state = 'aborted', ended_at = 'now', rowid = 77 WHERE id = 3",
        "UPDATE session SET state = 'aborted', ended_at = 'now' WHERE id = 3",  // its replicate runs
        "UPDATE replicate SET status = 'finished', replicate = 9 WHERE session_id = 3",
        "UPDATE replicate SET status = 'running' WHERE session_id = 3",
        "UPDATE replicate SET status = 'finished', load_order = '[]' WHERE session_id = 3",
        "INSERT INTO session SELECT 9, '" + new_uuid() + "', 'sealed', started_at, 'now', host, device, runner_version, " + seal +
            ", place_kind, place_name, place_base, place_candidate, place_changed_objects, plan_sha256, plan, experiment,"
            " experiment_version, workload_id, environment_id FROM session WHERE id = 1",
        "INSERT INTO event VALUES(3, 5, 'now', 'gap', '')",
        "INSERT INTO round(session_id, replicate," + std::string(round_values) + "(3, 4, 0, 0, 0, 'base', 0, 1, x'01', 1)",
        "INSERT INTO round(session_id, replicate," + std::string(round_values) + "(3, 0, 0, 0, 0, 'candidate', 0, 1, x'01', 1)",
        "INSERT INTO telemetry VALUES(3, 4, 0, 0, 1, '{}')",
    };
    for (const auto& attack : attacks) {
        INFO(attack);
        CHECK(raw.exec(attack).find("refused") != std::string::npos);
    }
    CHECK(raw.dump() == before);
    const std::string round = "INSERT INTO round(session_id, replicate," + std::string(round_values);
    CHECK(raw.exec(round + "(3, 0, 0, 0, 0, 'base', 0, 1, x'01', 1)") == "");
    CHECK(raw.exec(round + "(3, 0, 0, 0, 1, 'base', 0, 1, x'01', 1)") != "");  // an arm decodes once in a round
    CHECK(raw.exec("INSERT INTO telemetry VALUES(3, 0, -1, -1, 1, '{}')") == "");
    CHECK(raw.exec("INSERT INTO telemetry VALUES(3, 0, 0, -1, 1, '{}')") != "");  // before all rounds or after one
    CHECK(raw.exec("UPDATE replicate SET status = 'finished' WHERE session_id = 3") == "");
    CHECK(raw.exec("INSERT INTO telemetry VALUES(3, 0, 0, 0, 2, '{}')") != "");
    CHECK(raw.exec(round + "(3, 0, 0, 1, 0, 'base', 0, 1, x'01', 1)") != "");  // the replicate has ended
}
