#include "runner/main/progress.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "reports/progress.hpp"

namespace kestrel::cli {
namespace {

// Often enough to look alive in a log, rarely enough not to fill it.
constexpr std::chrono::seconds plain_interval{10};

// Mean log ratio of all finished rounds: an orientation, not the estimate.
std::optional<double> ratio_so_far(const std::vector<Window>& windows) {
    double sum = 0.0;
    int rounds = 0;
    for (std::size_t first = 0; first + arm_count <= windows.size(); first += arm_count) {
        for (std::size_t i = first; i < first + arm_count; ++i) {
            if (windows[i].arm == ArmRole::base) sum += std::log(windows[i].ms_per_token());
            if (windows[i].arm == ArmRole::candidate) sum -= std::log(windows[i].ms_per_token());
        }
        ++rounds;
    }
    if (rounds == 0) return std::nullopt;
    return std::exp(sum / rounds);
}

}  // namespace

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
    if (terminal_ && shown_) std::cerr << "\r\033[K" << std::flush;
}

void ProgressLine::update(const session::SessionProgress& so_far) {
    if (quiet_) return;
    const Plan& plan = so_far.plan;
    const Clock::time_point now = Clock::now();
    if (!terminal_ && shown_ && now - last_shown_ < plain_interval) return;
    shown_ = true;
    last_shown_ = now;
    const int per_replicate = plan.super_rounds * 6;
    const int done = static_cast<int>(so_far.windows.size()) / arm_count;
    const int total = plan.replicates * per_replicate;
    const double elapsed = std::chrono::duration<double>(now - started_).count();
    Progress progress;
    progress.replicate = (done - 1) / per_replicate + 1;
    progress.replicates = plan.replicates;
    progress.round = (done - 1) % per_replicate + 1;
    progress.rounds = per_replicate;
    progress.ratio = ratio_so_far(so_far.windows);
    progress.seconds_left = elapsed / done * (total - done);
    for (const Look& look : plan.looks) {
        const int end = look.replicates * per_replicate;
        if (end <= done && look.replicates < plan.replicates) ++progress.looks;
        if (end > done && !progress.seconds_to_look) progress.seconds_to_look = elapsed / done * (end - done);
    }
    std::cerr << (terminal_ ? "\r\033[K" : "") << progress_line(progress) << (terminal_ ? "" : "\n") << std::flush;
}

}  // namespace kestrel::cli
