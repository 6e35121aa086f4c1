// SQLite behind three owning types. Nothing else in the project includes sqlite3.h.
// Errors are thrown as Error(ExitCode::storage) with the file, SQLite's message and what to do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace kestrel {

enum class OpenMode { read_write, read_only };

// "kab1": marks a file as ours in SQLite's header, so that another program's database is never changed.
inline constexpr std::int64_t kestrel_application_id = 0x6b616231;

struct Blob {
    std::string_view bytes;
};

class Connection;

// A prepared statement. Parameters and columns count from ?1 and 0, as in SQLite.
class Statement {
  public:
    Statement(Connection& connection, std::string_view sql);

    // Binds all parameters in order.
    template <typename... Values>
    Statement& bind(const Values&... values) {
        int index = 0;
        (bind_one(++index, values), ...);
        return *this;
    }

    // True if there is a row to read. After false or an exception the statement can be bound and run again.
    bool step();

    // For a statement that yields no rows.
    void run();

    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] double real(int column) const;       // NaN for NULL: SQLite stores NaN so
    [[nodiscard]] std::string text(int column) const;  // "" for NULL; a BLOB's bytes
    [[nodiscard]] bool is_null(int column) const;

    // One value in a form that has no two readings, for hashing: type letter, length where it varies, bytes.
    [[nodiscard]] std::string canonical(int column) const;
    [[nodiscard]] int columns() const;

  private:
    void bind_one(int index, std::int64_t value);
    void bind_one(int index, int value) { bind_one(index, static_cast<std::int64_t>(value)); }
    void bind_one(int index, bool value) { bind_one(index, static_cast<std::int64_t>(value)); }
    void bind_one(int index, double value);
    void bind_one(int index, std::string_view value);
    void bind_one(int index, const std::string& value) { bind_one(index, std::string_view(value)); }
    void bind_one(int index, const char* value) { bind_one(index, std::string_view(value)); }
    void bind_one(int index, Blob value);

    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    Connection* connection_;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// An open database file. For one thread at a time. Movable only before statements on it exist.
class Connection {
  public:
    // read_write creates the file and its directory. Both modes refuse network filesystems, files that are not databases
    // and damaged ones.
    Connection(const std::string& path, OpenMode mode);

    void execute(const std::string& sql);                       // one or more statements without parameters
    [[nodiscard]] std::int64_t scalar(const std::string& sql);  // first column of the first row; 0 if there is none
    [[nodiscard]] std::int64_t last_insert_id() const;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] OpenMode mode() const { return mode_; }

    // Copies the whole database, consistent even while another process writes, to a new file. Refuses an existing file.
    void backup_to(const std::string& target);

    // Throws the Error for SQLite's result code; `doing` completes "cannot ...".
    [[noreturn]] void fail(int code, const std::string& doing) const;

  private:
    friend class Statement;
    friend class Transaction;
    struct Close {
        void operator()(sqlite3* handle) const;
    };
    std::string path_;
    OpenMode mode_;
    std::unique_ptr<sqlite3, Close> handle_;
};

// Takes the write lock at once (so that it cannot fail half-way for another writer); rolls back unless committed.
class Transaction {
  public:
    explicit Transaction(Connection& connection);
    ~Transaction();
    Transaction(Transaction&& other) noexcept : connection_(other.connection_) { other.connection_ = nullptr; }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    Transaction& operator=(Transaction&&) = delete;

    // On return the changes have reached the disk.
    void commit();

  private:
    Connection* connection_;
};

// A consistent view for several reads; writers go on meanwhile.
class Snapshot {
  public:
    explicit Snapshot(Connection& connection);
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;

  private:
    Connection& connection_;
};

}  // namespace kestrel
