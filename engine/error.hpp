// The engine's own error type. It never leaves the library: abi.cpp turns it into a status and the thread's error text.
#pragma once

#include <stdexcept>
#include <string>

#include "engine/abi.h"

namespace kestrel {

// `what()` says what happened and, where the user can act, what to do.
class EngineError : public std::runtime_error {
  public:
    EngineError(kestrel_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
    [[nodiscard]] kestrel_status status() const noexcept { return status_; }

  private:
    kestrel_status status_;
};

[[noreturn]] inline void fail(kestrel_status status, const std::string& message) {
    throw EngineError(status, message);
}
[[noreturn]] inline void bad_model(const std::string& message) {
    throw EngineError(KESTREL_BAD_MODEL, message);
}
[[noreturn]] inline void bad_argument(const std::string& message) {
    throw EngineError(KESTREL_BAD_ARGUMENT, message);
}

}  // namespace kestrel
