// Worker processes and the line channel to them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kestrel::platform {

// Both ends of a stream of text lines. Owns the file descriptor.
class LineChannel {
  public:
    explicit LineChannel(int fd) : fd_(fd) {}
    LineChannel(LineChannel&& other) noexcept;
    LineChannel& operator=(LineChannel&&) = delete;
    LineChannel(const LineChannel&) = delete;
    LineChannel& operator=(const LineChannel&) = delete;
    ~LineChannel();

    // Sends one line (must hold no newline). False if the other side is gone.
    bool send(const std::string& line);

    enum class Status { line, closed, timeout, interrupted };
    struct Received {
        Status status = Status::closed;
        std::string line;
    };
    // The next line, or why there is none. `interrupted`: a signal handler ran.
    Received receive(std::chrono::milliseconds deadline);

    [[nodiscard]] int fd() const { return fd_; }

  private:
    int fd_;
    std::string buffer_;
};

struct ExitStatus {
    enum class Kind { exited, signalled, unkillable } kind = Kind::exited;
    int code = 0;  // exit code or signal number
    bool core_dumped = false;
    std::int64_t max_rss_kib = 0;
    [[nodiscard]] bool clean() const { return kind == Kind::exited && code == 0; }
    [[nodiscard]] std::string text() const;  // "exit code 3", "signal 11 (Segmentation fault)"
};

// A child of this very program in its own process group, with a scrubbed environment, killed with its group on destruction.
class WorkerProcess {
  public:
    // Starts /proc/self/exe with `arguments`; the child's channel is its file descriptor 3. `inherited` stays open in the child
    // (the device lock: it must outlive a killed supervisor until the worker is gone too).
    WorkerProcess(const std::vector<std::string>& arguments, std::optional<int> inherited);
    WorkerProcess(const WorkerProcess&) = delete;
    WorkerProcess& operator=(const WorkerProcess&) = delete;
    ~WorkerProcess();

    [[nodiscard]] LineChannel& channel() { return channel_; }
    [[nodiscard]] std::int64_t pid() const { return pid_; }

    // Waits for the end; kills the group when the grace is over. A process that is still there 2 s later is `unkillable`.
    ExitStatus wait(std::chrono::milliseconds grace);
    void kill();

  private:
    LineChannel channel_;
    std::int64_t pid_ = -1;
    bool reaped_ = false;
};

inline constexpr int worker_channel_fd = 3;

// In the worker: die when the supervisor dies.
void die_with_parent();

// SIGINT and SIGTERM set a flag and interrupt a receive() instead of ending the process.
void catch_termination();
[[nodiscard]] bool termination_requested();

}  // namespace kestrel::platform
