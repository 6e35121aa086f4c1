#include "store/sqlite.hpp"

#include <sqlite3.h>

#include <bit>
#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>

#include "runner/record/error.hpp"
#include "store/filesystem.hpp"

namespace kestrel {
namespace {

constexpr int busy_timeout_ms = 10000;

std::string advice(int code) {
    switch (code & 0xff) {
        case SQLITE_FULL:
            return "the disk is full: free some space and run again; everything reported before is safe";
        case SQLITE_IOERR:
            return "the disk reported an error: check free space, quota and the disk's health; everything reported before is safe";
        case SQLITE_NOTADB:
            return "this file is not a kestrel-ab database: name another one with --db or KESTREL_AB_DB, or move it away";
        case SQLITE_CORRUPT:
            return "the database is damaged: move it away and restore the last backup ('kestrel-ab store backup' makes them); "
                   "'sqlite3 FILE .recover' may save rows";
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return "another process holds the database: wait for it to finish, or end it, and run again";
        case SQLITE_READONLY:
        case SQLITE_PERM:
        case SQLITE_AUTH:
            return "no permission to write: check the owner of the file and of its directory, or name another file with --db or "
                   "KESTREL_AB_DB";
        case SQLITE_CANTOPEN:
            return "check that the file exists and that you may read it and its directory, or name another one with --db or KESTREL_AB_DB";
        case SQLITE_CONSTRAINT:
            return "nothing was stored";
        case SQLITE_NOMEM:
            return "out of memory";
        default:
            return "check the database with 'kestrel-ab store verify'";
    }
}

// A new file becomes a write-ahead one under an exclusive lock, for which SQLite does not wait (its busy handler is not asked, to
// avoid deadlocks), so processes that open one new file at once have to try again. Any other error shows in the statement after it.
void wait_for_wal(sqlite3* handle) {
    constexpr std::chrono::milliseconds pause{5};
    for (int waited_ms = 0; waited_ms < busy_timeout_ms; waited_ms += static_cast<int>(pause.count())) {
        const int code = sqlite3_exec(handle, "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr);
        if ((code & 0xff) != SQLITE_BUSY) return;  // the low byte is the primary code
        std::this_thread::sleep_for(pause);
    }
}

}  // namespace

void Connection::Close::operator()(sqlite3* handle) const {
    sqlite3_close_v2(handle);
}

void Connection::fail(int code, const std::string& doing) const {
    const std::string message = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
    throw Error(ExitCode::storage, "cannot " + doing + " (database " + path_ + "): " + message + "; " + advice(code));
}

Connection::Connection(const std::string& path, OpenMode mode) : path_(path), mode_(mode) {
    refuse_network_filesystem(path);
    const bool writes = mode == OpenMode::read_write;
    if (writes) {
        create_parent_directory(path);
    } else if (std::error_code ignored; !std::filesystem::exists(path, ignored)) {
        throw Error(ExitCode::storage,
                    "there is no database at " + path + "; 'kestrel-ab run' creates it, or name another one with --db or KESTREL_AB_DB");
    }
    sqlite3* handle = nullptr;
    const int flags = (writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_FULLMUTEX;
    const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
    handle_.reset(handle);
    if (code != SQLITE_OK) fail(code, "open");
    sqlite3_extended_result_codes(handle_.get(), 1);
    sqlite3_busy_timeout(handle_.get(), busy_timeout_ms);
    // A damaged file is found here, before anything relies on it: the schema is read and parsed.
    if (scalar("SELECT count(*) FROM sqlite_schema") != 0 && scalar("PRAGMA application_id") != kestrel_application_id) {
        throw Error(ExitCode::storage, path + " is another program's SQLite database and is left alone; name another file with --db");
    }
    if (writes) {
        wait_for_wal(handle_.get());
        Statement mode_now(*this, "PRAGMA journal_mode=WAL");
        if (!mode_now.step() || mode_now.text(0) != "wal") {
            throw Error(ExitCode::storage,
                        "cannot use the database " + path +
                            ": its filesystem does not support write-ahead logging; name a file on a local disk with --db");
        }
    }
    // REPLACE fires delete triggers only with recursive_triggers; an untrusted file's schema may not call risky functions.
    execute("PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA recursive_triggers=ON; PRAGMA trusted_schema=OFF;");
}

void Connection::execute(const std::string& sql) {
    const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) fail(code, "write");
}

std::int64_t Connection::scalar(const std::string& sql) {
    Statement statement(*this, sql);
    return statement.step() ? statement.integer(0) : 0;
}

std::int64_t Connection::last_insert_id() const {
    return sqlite3_last_insert_rowid(handle_.get());
}

void Connection::backup_to(const std::string& target) {
    if (std::error_code ignored; std::filesystem::exists(target, ignored)) {
        throw Error(ExitCode::usage, "the backup would overwrite " + target + "; name a file that does not exist");
    }
    create_parent_directory(target);
    // VACUUM INTO reads one snapshot and leaves a complete single file or, on failure, an error.
    try {
        Statement statement(*this, "VACUUM INTO ?1");
        statement.bind(target).run();
    } catch (...) {
        std::error_code ignored;
        std::filesystem::remove(target, ignored);
        throw;
    }
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

Statement::Statement(Connection& connection, std::string_view sql) : connection_(&connection) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v2(connection.handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
    statement_.reset(statement);
    if (code != SQLITE_OK) connection.fail(code, "read");
}

bool Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    const bool writes = sqlite3_stmt_readonly(statement_.get()) == 0;
    if (code == SQLITE_DONE) {
        sqlite3_reset(statement_.get());
        return false;
    }
    try {
        connection_->fail(code, writes ? "write" : "read");
    } catch (...) {
        sqlite3_reset(statement_.get());
        throw;
    }
}

void Statement::run() {
    while (step()) {
    }
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
}
double Statement::real(int column) const {
    return is_null(column) ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(statement_.get(), column);
}
std::string Statement::text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
    const int length = sqlite3_column_bytes(statement_.get(), column);
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(length));
}
bool Statement::is_null(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}
int Statement::columns() const {
    return sqlite3_column_count(statement_.get());
}

std::string Statement::canonical(int column) const {
    // Built by appending: g++ 12 warns falsely about a literal in front of a temporary string (-Wrestrict).
    std::string form;
    switch (sqlite3_column_type(statement_.get(), column)) {
        case SQLITE_INTEGER:
            form.append("i").append(std::to_string(integer(column)));
            break;
        case SQLITE_FLOAT:
            form.append("r").append(std::to_string(std::bit_cast<std::uint64_t>(real(column))));
            break;
        case SQLITE_NULL:
            form.append("n");
            break;
        default: {
            const bool is_text = sqlite3_column_type(statement_.get(), column) == SQLITE_TEXT;
            const std::string bytes = text(column);
            form.append(is_text ? "t" : "b").append(std::to_string(bytes.size())).append(":").append(bytes);
        }
    }
    return form.append(";");
}

void Statement::bind_one(int index, std::int64_t value) {
    if (const int code = sqlite3_bind_int64(statement_.get(), index, value); code != SQLITE_OK) connection_->fail(code, "bind a value");
}
void Statement::bind_one(int index, double value) {
    if (const int code = sqlite3_bind_double(statement_.get(), index, value); code != SQLITE_OK) connection_->fail(code, "bind a value");
}
void Statement::bind_one(int index, std::string_view value) {
    // A null pointer would bind NULL where an empty text is meant.
    const char* bytes = value.data() == nullptr ? "" : value.data();
    const int code = sqlite3_bind_text64(statement_.get(), index, bytes, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    if (code != SQLITE_OK) connection_->fail(code, "bind a value");
}
void Statement::bind_one(int index, Blob value) {
    const char* bytes = value.bytes.data() == nullptr ? "" : value.bytes.data();
    const int code = sqlite3_bind_blob64(statement_.get(), index, bytes, value.bytes.size(), SQLITE_TRANSIENT);
    if (code != SQLITE_OK) connection_->fail(code, "bind a value");
}

Transaction::Transaction(Connection& connection) : connection_(&connection) {
    connection.execute("BEGIN IMMEDIATE");
}
Transaction::~Transaction() {
    // After a full disk SQLite may have rolled back by itself; then there is nothing left to do.
    if (connection_ == nullptr || sqlite3_get_autocommit(connection_->handle_.get()) != 0) return;
    sqlite3_exec(connection_->handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}
void Transaction::commit() {
    connection_->execute("COMMIT");
    connection_ = nullptr;
}

Snapshot::Snapshot(Connection& connection) : connection_(connection) {
    connection.execute("BEGIN");
}
Snapshot::~Snapshot() {
    try {
        connection_.execute("COMMIT");
    } catch (const Error&) {  // nothing was written, so nothing can be lost
    }
}

}  // namespace kestrel
