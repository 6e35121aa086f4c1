// The true size of a planted difference, found without the estimator that is to be tested.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runner/platform/lock.hpp"
#include "runner/record/record.hpp"

namespace kestrel::session {

struct StopwatchRequest {
    std::string library;  // one library, two settings of its switches
    std::string model;
    std::string work_directory;
    std::vector<SwitchSetting> base;
    std::vector<SwitchSetting> other;
    int threads = 0;
    int tokens = 32;       // per block
    int processes = 6;     // fresh ones: each draws another placement
    double seconds = 2.0;  // in each
};

struct StopwatchReading {
    double d = 0.0;               // ln(base / other): mean over processes of the median over pairs of neighbouring blocks
    double standard_error = 0.0;  // of d, from the scatter between processes
    double ms_per_token = 0.0;    // of base, median over blocks, mean over processes
    int processes = 0;
};

// Throws Error(invalid) if a process fails.
[[nodiscard]] StopwatchReading read_stopwatch(const StopwatchRequest& request, const platform::DeviceLock& lock);

}  // namespace kestrel::session
