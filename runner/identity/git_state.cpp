#include "runner/identity/git_state.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <vector>

extern char** environ;

namespace kestrel {

namespace {

// The surrounding environment without git's own variables: inside a git hook they would name another repository.
std::vector<std::string> environment_without_git() {
    std::vector<std::string> result{"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0"};
    for (char** entry = environ; *entry != nullptr; ++entry) {
        if (!std::string_view(*entry).starts_with("GIT_")) result.emplace_back(*entry);
    }
    return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

std::string read_to_end(int descriptor) {
    std::string text;
    std::array<char, 4096> buffer{};
    for (;;) {
        const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
        if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
        if (got == 0 || (got < 0 && errno != EINTR)) return text;
    }
}

// Standard output of `git -C folder arguments...`; nothing if git is absent or fails.
std::optional<std::string> git(const std::filesystem::path& folder, const std::vector<std::string>& arguments) {
    // A checkout may name a program as its file monitor; looking at it must not run that program.
    std::vector<std::string> argv{"git", "-c", "core.fsmonitor=false", "-C", folder.string()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environment = environment_without_git();
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    pid_t child = 0;
    const int failure = ::posix_spawnp(&child, "git", &actions, nullptr, pointers(argv).data(), pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::string text = failure == 0 ? read_to_end(ends[0]) : std::string();
    ::close(ends[0]);
    if (failure != 0) return std::nullopt;

    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return std::nullopt;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
    return text;
}

}  // namespace

GitState git_state_of(const std::filesystem::path& folder) {
    GitState state;
    const std::optional<std::string> head = git(folder, {"rev-parse", "--verify", "HEAD"});
    if (!head) return state;
    state.commit = head->substr(0, head->find('\n'));
    // A status that fails proves nothing clean.
    const std::optional<std::string> changes = git(folder, {"status", "--porcelain", "--untracked-files=no"});
    state.dirty = !changes || !changes->empty();
    return state;
}

}  // namespace kestrel
