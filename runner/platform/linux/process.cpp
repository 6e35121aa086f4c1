#include "runner/platform/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runner/record/error.hpp"

namespace kestrel::platform {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> termination{false};

void on_termination(int) {
    termination.store(true);
}

// A worker gets nothing that could steer an engine or the loader, but for the choice of a device; all arms share what is left.
std::vector<std::string> scrubbed_environment() {
    std::vector<std::string> kept{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"};
    for (const std::string name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}) {
        if (const char* value = std::getenv(name.c_str())) kept.push_back(name + "=" + value);
    }
    return kept;
}

}  // namespace

LineChannel::LineChannel(LineChannel&& other) noexcept : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}

LineChannel::~LineChannel() {
    if (fd_ >= 0) ::close(fd_);
}

bool LineChannel::send(const std::string& line) {
    const std::string whole = line + "\n";
    std::size_t at = 0;
    while (at < whole.size()) {
        const ssize_t n = ::send(fd_, whole.data() + at, whole.size() - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += static_cast<std::size_t>(n);
    }
    return true;
}

LineChannel::Received LineChannel::receive(std::chrono::milliseconds deadline) {
    const auto end = Clock::now() + deadline;
    for (;;) {
        if (const auto newline = buffer_.find('\n'); newline != std::string::npos) {
            Received got{Status::line, buffer_.substr(0, newline)};
            buffer_.erase(0, newline + 1);
            return got;
        }
        // Asked on every turn, in short slices: the signal may have come while nobody was waiting here.
        if (termination_requested()) return {Status::interrupted, {}};
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0) return {Status::timeout, {}};
        pollfd waiting{fd_, POLLIN, 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 200)));
        if (ready <= 0) continue;
        std::array<char, 65536> chunk{};
        const ssize_t n = ::recv(fd_, chunk.data(), chunk.size(), 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return {Status::closed, {}};
        buffer_.append(chunk.data(), static_cast<std::size_t>(n));
    }
}

std::string ExitStatus::text() const {
    switch (kind) {
        case Kind::exited:
            return "exit code " + std::to_string(code);
        case Kind::signalled:
            return "signal " + std::to_string(code) + " (" + ::strsignal(code) + ")" + (core_dumped ? ", core dumped" : "");
        case Kind::unkillable:
            break;
    }
    return "could not be killed (probably waiting inside a driver)";
}

WorkerProcess::WorkerProcess(const std::vector<std::string>& arguments, std::optional<int> inherited) : channel_(-1) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw Error(ExitCode::invalid, std::string("cannot open a channel to a worker: ") + std::strerror(errno));
    }
    LineChannel mine(ends[0]);
    // Above the descriptors that the worker's own things go to; dup2 onto itself would also leave close-on-exec set.
    LineChannel theirs(::fcntl(ends[1], F_DUPFD_CLOEXEC, 10));
    ::close(ends[1]);

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    // Standard output holds only what was asked for, whatever an engine prints; and nobody types answers to an engine.
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, theirs.fd(), worker_channel_fd);
    // dup2 onto 4 clears close-on-exec, so the lock lives as long as the worker.
    if (inherited) posix_spawn_file_actions_adddup2(&actions, *inherited, worker_channel_fd + 1);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));

    std::vector<std::string> texts = arguments;
    texts.insert(texts.begin(), "kestrel-ab");
    std::vector<char*> argv;
    argv.reserve(texts.size() + 1);
    for (std::string& text : texts) argv.push_back(text.data());
    argv.push_back(nullptr);
    std::vector<std::string> kept = scrubbed_environment();
    std::vector<char*> environment;
    for (std::string& one : kept) environment.push_back(one.data());
    environment.push_back(nullptr);
    pid_t pid = -1;
    const int failed = ::posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failed != 0) {
        throw Error(ExitCode::invalid, std::string("cannot start a worker process: ") + std::strerror(failed));
    }
    pid_ = pid;
    std::destroy_at(&channel_);
    std::construct_at(&channel_, std::move(mine));
}

WorkerProcess::~WorkerProcess() {
    if (!reaped_) {
        kill();
        wait(std::chrono::milliseconds(0));
    }
}

void WorkerProcess::kill() {
    if (pid_ > 0 && !reaped_) {
        ::kill(static_cast<pid_t>(-pid_), SIGKILL);
        ::kill(static_cast<pid_t>(pid_), SIGKILL);  // before the child made its group
    }
}

ExitStatus WorkerProcess::wait(std::chrono::milliseconds grace) {
    const auto kill_at = Clock::now() + grace;
    const auto give_up_at = kill_at + std::chrono::seconds(2);
    bool killed = false;
    for (;;) {
        int status = 0;
        rusage usage{};
        const pid_t got = ::wait4(static_cast<pid_t>(pid_), &status, WNOHANG, &usage);
        if (got == pid_) {
            reaped_ = true;
            ::kill(static_cast<pid_t>(-pid_), SIGKILL);  // whatever an engine started must not compute beside the next replicate
            ExitStatus result;
            result.max_rss_kib = usage.ru_maxrss;
            result.kind = WIFSIGNALED(status) ? ExitStatus::Kind::signalled : ExitStatus::Kind::exited;
            result.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
            result.core_dumped = WIFSIGNALED(status) && WCOREDUMP(status);
            return result;
        }
        const auto now = Clock::now();
        if (!killed && now >= kill_at) {
            kill();
            killed = true;
        }
        if (now >= give_up_at) {
            reaped_ = true;
            return {ExitStatus::Kind::unkillable, 0, false, 0};
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

void die_with_parent() {
    // A supervisor that died before this line has closed the channel, which ends the worker too.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void catch_termination() {
    struct sigaction action {};
    action.sa_handler = on_termination;
    ::signal(SIGCHLD, SIG_DFL);  // an inherited "ignore" would reap workers behind our back
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

bool termination_requested() {
    return termination.load();
}

}  // namespace kestrel::platform
