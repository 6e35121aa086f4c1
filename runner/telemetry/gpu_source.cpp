#include "runner/telemetry/gpu_source.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "runner/record/json.hpp"
#include "runner/record/names.hpp"
#include "runner/telemetry/gpu_child.hpp"

namespace kestrel::telemetry {
namespace {

using Status = platform::LineChannel::Status;

std::string after(std::chrono::milliseconds limit) {
    return "no answer within " + std::to_string(limit.count()) + " ms";
}

}  // namespace

GpuSource::GpuSource(GpuSettings settings) : settings_(std::move(settings)) {
    try {
        const std::vector<std::string> arguments{gpu_child_argument, settings_.uuid, settings_.library};
        process_ = std::make_unique<platform::WorkerProcess>(arguments, std::nullopt);
    } catch (const std::exception& error) {
        give_up(error.what());
    }
}

std::optional<std::int64_t> GpuSource::pid() const {
    if (!process_ || !problem_.empty()) return std::nullopt;
    return process_->pid();
}

void GpuSource::give_up(const std::string& why) {
    problem_ = why.empty() ? "unknown reason" : why;
    // It is not waited for here: inside a driver it may take its time to die. That is done when this object ends.
    if (process_) process_->kill();
}

bool GpuSource::wait_for_start() {
    const auto got = process_->channel().receive(settings_.start_deadline);
    if (got.status == Status::interrupted) return false;  // the session is about to end; nothing is wrong with the device
    if (got.status != Status::line) {
        give_up(got.status == Status::timeout ? after(settings_.start_deadline) : "the reading process ended before it was ready");
        return false;
    }
    const nlohmann::json message = parse_json(got.line);
    started_ = message.value("ready", false);
    if (!started_) give_up(message.value("error", std::string()));
    return started_;
}

std::optional<Values> GpuSource::read(std::int64_t worker_pid) {
    if (!problem_.empty()) return std::nullopt;
    try {
        if (!started_ && !wait_for_start()) return std::nullopt;
        const std::int64_t number = ++asked_;
        if (!process_->channel().send(std::to_string(number) + " " + std::to_string(worker_pid))) {
            give_up("the reading process ended");
            return std::nullopt;
        }
        const auto until = std::chrono::steady_clock::now() + settings_.deadline;
        for (;;) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
            const auto got = process_->channel().receive(left);
            if (got.status == Status::interrupted) return std::nullopt;
            if (got.status != Status::line) {
                give_up(got.status == Status::timeout ? after(settings_.deadline) : "the reading process ended");
                return std::nullopt;
            }
            const nlohmann::json message = parse_json(got.line);
            if (message.contains("error")) {
                give_up(message.at("error").get<std::string>());
                return std::nullopt;
            }
            // An answer to an interrupted question is of an earlier round.
            if (message.at("number").get<std::int64_t>() == number) return message.at("values").get<Values>();
        }
    } catch (const std::exception& error) {
        give_up(std::string("the reading process sent what is no reading: ") + error.what());
        return std::nullopt;
    }
}

std::optional<std::string> gpu_uuid(const std::string& device) {
    const std::string label = ", UUID ";
    const auto at = device.find(label);
    if (!is_gpu(device) || at == std::string::npos) return std::nullopt;
    const std::string digits = device.substr(at + label.size(), 32);
    if (digits.size() != 32 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
    return "GPU-" + digits.substr(0, 8) + "-" + digits.substr(8, 4) + "-" + digits.substr(12, 4) + "-" + digits.substr(16, 4) + "-" +
           digits.substr(20);
}

}  // namespace kestrel::telemetry
