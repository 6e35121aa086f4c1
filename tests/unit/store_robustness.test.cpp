// Killed writers, full disks, damaged and foreign files, readers beside a writer.
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "store/filesystem.hpp"
#include "store/migrations.hpp"
#include "store/repository.hpp"
#include "store/seal.hpp"
#include "store/stamp.hpp"

namespace {

using namespace kestrel;

struct Directory {
    std::filesystem::path path;
    Directory() {
        std::string name = (std::filesystem::temp_directory_path() / "kestrel-robust-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~Directory() { std::filesystem::remove_all(path); }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    [[nodiscard]] std::string database() const { return (path / "history.db").string(); }
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

std::vector<Window> windows_of(int number) {
    std::vector<Window> windows;
    for (int slot = 0; slot < 3; ++slot) {
        windows.push_back(
            {0, number / 6, number % 6, slot, static_cast<ArmRole>(slot), number, 1000, std::vector<std::int64_t>(16, 10000000), "digest"});
    }
    return windows;
}

void begin(Store& store, const Session& session) {
    store.begin_session(session);
    Replicate replicate;
    replicate.worker_pid = 1;
    store.begin_replicate(session.uuid, replicate);
}

std::string message_of(const std::string& path, OpenMode mode) {
    try {
        Store store(path, mode);
        (void)store.list_sessions();
        for (const std::string& problem : store.verify()) throw Error(ExitCode::storage, problem);
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::storage);
        return error.what();
    }
    return "";
}

void sql(const std::string& path, const std::string& text) {
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &handle) == SQLITE_OK);
    CHECK(sqlite3_exec(handle, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(handle);
}

// Runs `work` in a child process and returns its process id. No exception and no Catch2 code runs on past it there.
template <typename Work>
pid_t in_child(Work work) {
    const pid_t child = fork();
    if (child != 0) return child;
    int code = 99;
    try {
        code = work();
    } catch (...) {
    }
    _exit(code);
}

int exit_code(pid_t child) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("kill -9 keeps every round that was reported, and no half of one", "[store][robust]") {
    const int reported_before_kill = GENERATE(1, 7, 40);
    const Directory directory;
    const Session session = small_session();
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    const pid_t child = in_child([&] {
        Store store(directory.database());
        begin(store, session);
        for (int number = 0;; ++number) {
            store.add_round(session.uuid, windows_of(number));
            if (write(pipe_ends[1], "r", 1) != 1) return 1;
        }
    });
    close(pipe_ends[1]);
    char byte = 0;
    int reported = 0;
    while (reported < reported_before_kill && read(pipe_ends[0], &byte, 1) == 1) ++reported;
    kill(child, SIGKILL);
    CHECK(exit_code(child) == -1);
    while (read(pipe_ends[0], &byte, 1) == 1) ++reported;  // reported between the last read and the kill
    close(pipe_ends[0]);
    REQUIRE(reported >= reported_before_kill);

    Store store(directory.database());
    const Session left = store.load_session(session.uuid);
    CHECK(left.windows.size() % 3 == 0);
    CHECK(left.windows.size() / 3 >= static_cast<std::size_t>(reported));
    CHECK(left.windows.size() / 3 <= static_cast<std::size_t>(reported) + 1);
    CHECK(left.state == SessionState::running);
    REQUIRE(store.running_sessions().size() == 1);
    store.abort(session.uuid, "the runner was killed");
    const Session ended = store.load_session(session.uuid);
    CHECK(ended.state == SessionState::aborted);
    CHECK(ended.windows.size() == left.windows.size());
    CHECK(ended.replicates.at(0).status == "failed");
    CHECK(ended.replicates.at(0).worker_pid == 1);
    CHECK(ended.events.back().detail == "the runner was killed");
    CHECK(store.running_sessions().empty());
    CHECK(store.verify().empty());
}

TEST_CASE("a reader works beside a writer and cannot write", "[store][robust]") {
    const Directory directory;
    Store writer(directory.database());
    const Session session = small_session();
    begin(writer, session);
    Store reader(directory.database(), OpenMode::read_only);
    Connection holder(directory.database(), OpenMode::read_write);
    {
        const Transaction held(holder);  // a writer in the middle of its transaction
        CHECK(reader.list_sessions().size() == 1);
        CHECK(reader.load_session(session.uuid).windows.empty());
    }
    writer.add_round(session.uuid, windows_of(0));
    CHECK(reader.load_session(session.uuid).windows.size() == 3);
    CHECK_THROWS_WITH(reader.add_event(session.uuid, "x", ""), Catch::Contains("readonly"));
    reader.backup_to((directory.path / "copies" / "backup.db").string());
    CHECK_THROWS_WITH(reader.backup_to((directory.path / "copies" / "backup.db").string()), Catch::Contains("would overwrite"));
    Store backup((directory.path / "copies" / "backup.db").string());
    CHECK(backup.load_session(session.uuid).windows.size() == 3);
    CHECK(backup.verify().empty());
}

TEST_CASE("a full disk is said to be full and loses nothing", "[store][robust]") {
    const Directory directory;
    const Session session = small_session();
    {
        Connection connection(directory.database(), OpenMode::read_write);
        migrate(connection);
        connection.execute("PRAGMA max_page_count=" + std::to_string(connection.scalar("PRAGMA page_count") + 2));
        CHECK_THROWS_WITH(
            [&] {
                Transaction transaction(connection);
                for (int i = 0;; ++i)
                    connection.execute("INSERT INTO output(digest) VALUES('" + std::to_string(i) + std::string(500, 'x') + "')");
            }(),
            Catch::Contains("the disk is full: free some space"));
        CHECK(connection.scalar("SELECT count(*) FROM output") == 0);  // rolled back, and the connection still works
    }
    // A limit on file sizes makes the system itself refuse to write.
    const pid_t child = in_child([&] {
        Store store(directory.database());
        begin(store, session);
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{400000, 400000};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
        int stored = 0;
        try {
            for (; stored < 5000; ++stored) store.add_round(session.uuid, windows_of(stored));
            return 2;
        } catch (const Error& error) {
            if (error.code() != ExitCode::storage || std::string(error.what()).find("free") == std::string::npos) return 3;
        }
        if (store.load_session(session.uuid).windows.size() != static_cast<std::size_t>(stored) * 3) return 4;
        return stored > 0 ? 0 : 5;
    });
    CHECK(exit_code(child) == 0);
    Store store(directory.database());
    const std::size_t kept = store.load_session(session.uuid).windows.size();
    CHECK(kept > 0);
    CHECK(kept % 3 == 0);
    store.add_round(session.uuid, windows_of(static_cast<int>(kept / 3)));
    CHECK(store.verify().empty());
}

TEST_CASE("damaged and foreign files are named and left alone", "[store][robust]") {
    const Directory directory;
    const std::string path = directory.database();
    {
        Store store(path);
        const Session session = small_session();
        begin(store, session);
        for (int number = 0; number < 60; ++number) store.add_round(session.uuid, windows_of(number));
    }
    REQUIRE(message_of(path, OpenMode::read_only).empty());
    const auto size = std::filesystem::file_size(path);
    SECTION("a text file") {
        std::ofstream(path, std::ios::trunc) << "this is not a database, and it is longer than SQLite's header of one hundred bytes, "
                                                "so that it cannot be taken for an empty one\n";
        for (const auto mode : {OpenMode::read_write, OpenMode::read_only}) {
            CHECK_THAT(message_of(path, mode), Catch::Contains(path) && Catch::Contains("not a database") && Catch::Contains("--db"));
        }
    }
    SECTION("overwritten in the middle") {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        for (std::size_t at = 4096; at + 4096 <= size; at += 4096) {
            file.seekp(static_cast<std::streamoff>(at));
            file << std::string(200, '\xa5');
        }
        file.close();
        CHECK_THAT(message_of(path, OpenMode::read_write), Catch::Contains("damaged") || Catch::Contains("malformed"));
    }
    SECTION("cut short") {
        std::filesystem::resize_file(path, size / 2 / 4096 * 4096);
        CHECK_THAT(message_of(path, OpenMode::read_write), Catch::Contains("damaged") || Catch::Contains("malformed"));
    }
    SECTION("a newer version") {
        sql(path, "PRAGMA user_version=999");
        CHECK_THAT(message_of(path, OpenMode::read_write), Catch::Contains("newer") && Catch::Contains("999"));
        CHECK_THAT(message_of(path, OpenMode::read_only), Catch::Contains("newer"));
    }
    SECTION("another program's database") {
        const std::string other = (directory.path / "other.db").string();
        sql(other, "CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)");
        const auto bytes = [&] {
            std::ifstream file(other, std::ios::binary);
            return std::string(std::istreambuf_iterator<char>(file), {});
        };
        const std::string before = bytes();
        CHECK_THAT(message_of(other, OpenMode::read_write), Catch::Contains("another program's"));
        CHECK(bytes() == before);
    }
    SECTION("a directory, and no file at all") {
        CHECK_THAT(message_of(directory.path.string(), OpenMode::read_write), Catch::Contains("cannot open"));
        const std::string missing = (directory.path / "missing.db").string();
        CHECK_THAT(message_of(missing, OpenMode::read_only), Catch::Contains("no database at"));
        CHECK_FALSE(std::filesystem::exists(missing));
        std::ofstream(directory.path / "file") << "x";
        CHECK_THAT(message_of((directory.path / "file" / "a.db").string(), OpenMode::read_write),
                   Catch::Contains("cannot create the directory"));
    }
}

TEST_CASE("migration runs once, also when many open a new file at once", "[store][robust]") {
    const Directory directory;
    const std::string path = (directory.path / "new" / "deeper" / "history.db").string();
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
        children.push_back(in_child([&] {
            Store store(path);
            store.begin_session(small_session());
            return 0;
        }));
    }
    for (const pid_t child : children) CHECK(exit_code(child) == 0);
    Store store(path);
    CHECK(store.list_sessions().size() == 8);
    Connection connection(path, OpenMode::read_write);
    CHECK(connection.scalar("PRAGMA user_version") == schema_version());
    const auto objects = connection.scalar("SELECT count(*) FROM sqlite_schema");
    migrate(connection);
    CHECK(connection.scalar("SELECT count(*) FROM sqlite_schema") == objects);
    CHECK(connection.scalar("PRAGMA foreign_keys") == 1);
    CHECK(connection.scalar("PRAGMA recursive_triggers") == 1);
    CHECK(connection.scalar("PRAGMA synchronous") == 2);
    CHECK(connection.scalar("PRAGMA trusted_schema") == 0);
}

TEST_CASE("network filesystems are known by their numbers", "[store][robust]") {
    CHECK(network_filesystem_name(0x6969, "") == "NFS");
    CHECK(network_filesystem_name(0xFF534D42, "") == "CIFS");
    CHECK(network_filesystem_name(0xFE534D42, "") == "SMB2");
    CHECK(network_filesystem_name(0x65735546, "fuse.sshfs") == "fuse.sshfs");
    CHECK(network_filesystem_name(0x65735546, "fuse.fuse-overlayfs").empty());
    CHECK(network_filesystem_name(0x65735546, "fuseblk").empty());
    CHECK(network_filesystem_name(0xEF53, "").empty());      // ext4
    CHECK(network_filesystem_name(0x01021994, "").empty());  // tmpfs
}
