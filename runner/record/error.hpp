// One error type for everything a user can cause or must act on. The code is the process's exit code (README, "Exit codes").
#pragma once

#include <stdexcept>
#include <string>

namespace kestrel {

enum class ExitCode : int {
    pass = 0,
    failed = 1,  // SLOWER, or a failed gate, check or acceptance
    usage = 2,   // usage or configuration
    undecided = 3,
    not_comparable = 4,
    invalid = 5,  // aborted, INVALID or not checked
    storage = 6,
    stale = 7,
};

// `what()` says what happened and what to do about it.
class Error : public std::runtime_error {
  public:
    Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] ExitCode code() const noexcept { return code_; }

  private:
    ExitCode code_;
};

}  // namespace kestrel
