#include "runner/telemetry/gpu_child.hpp"

#include <unistd.h>

#include <chrono>
#include <sstream>

#include "runner/platform/nvml.hpp"
#include "runner/platform/process.hpp"
#include "runner/record/error.hpp"
#include "runner/record/json.hpp"

namespace kestrel::telemetry {
namespace {

// A supervisor asks at least once a round; should it vanish without a trace, this ends too.
constexpr std::chrono::hours silence_limit{24};

int serve(platform::LineChannel& channel, const std::vector<std::string>& arguments) {
    if (arguments.size() != 2) return static_cast<int>(ExitCode::usage);
    try {
        const platform::Nvml device(arguments[1], arguments[0]);
        channel.send(dump_json({{"ready", true}}));
        for (;;) {
            const auto request = channel.receive(silence_limit);
            if (request.status != platform::LineChannel::Status::line) return 0;
            std::istringstream in(request.line);
            std::int64_t number = 0;
            std::int64_t pid = 0;
            if (!(in >> number >> pid)) return static_cast<int>(ExitCode::usage);
            if (!channel.send(dump_json({{"number", number}, {"values", device.read(pid)}}))) return 0;
        }
    } catch (const std::exception& error) {
        channel.send(dump_json({{"error", error.what()}}));
        return static_cast<int>(ExitCode::invalid);
    }
}

}  // namespace

void gpu_child_main(const std::vector<std::string>& arguments) {
    platform::die_with_parent();
    platform::LineChannel channel(platform::worker_channel_fd);
    // Not exit(): what the library registered for it might hang as well.
    ::_exit(serve(channel, arguments));
}

}  // namespace kestrel::telemetry
