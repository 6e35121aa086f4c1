// The progress line: rewritten in place on a terminal, a plain line now and then elsewhere.
#pragma once

#include <chrono>

#include "runner/session/supervisor.hpp"

namespace kestrel::cli {

class ProgressLine {
  public:
    explicit ProgressLine(bool quiet);
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    ~ProgressLine();  // leaves the cursor on a fresh line

    // After each durable round.
    void update(const session::SessionProgress& so_far);

  private:
    using Clock = std::chrono::steady_clock;
    bool quiet_;
    bool terminal_;
    bool shown_ = false;
    Clock::time_point started_ = Clock::now();
    Clock::time_point last_shown_;
};

}  // namespace kestrel::cli
