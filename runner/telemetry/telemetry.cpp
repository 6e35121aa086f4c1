#include "runner/telemetry/telemetry.hpp"

#include <utility>

#include "runner/record/names.hpp"

namespace kestrel::telemetry {

Telemetry::Telemetry(const TelemetrySettings& settings) : began_(std::chrono::steady_clock::now()), counters_(settings.root) {
    if (!is_gpu(settings.device)) return;
    const auto uuid = gpu_uuid(settings.device);
    if (uuid) {
        gpu_ = std::make_unique<GpuSource>(GpuSettings{*uuid, settings.library, settings.start_deadline, settings.deadline});
    } else {
        device_problem_ = "the engine does not tell the device's UUID: '" + settings.device + "'";
    }
}

std::string Telemetry::gpu_problem() const {
    return gpu_ ? gpu_->problem() : device_problem_;
}

void Telemetry::read_cpu(std::int64_t worker_pid, Reading& reading) {
    const auto machine = counters_.cpu_times();
    const auto worker = platform::process_cpu_s(worker_pid);
    const auto own = platform::process_cpu_s(platform::own_pid());
    if (machine && worker && own) {
        if (gpu_ && gpu_->pid()) reader_s_ = platform::process_cpu_s(*gpu_->pid()).value_or(reader_s_);
        reading.sources["cpu"] = {
            {"busy_s", machine->busy_s}, {"steal_s", machine->steal_s}, {"worker_s", *worker}, {"own_s", *own + reader_s_}};
    }
    if (const auto some = counters_.pressure_s()) reading.sources["pressure"] = {{"some_s", *some}};
    if (const auto mhz = counters_.mean_frequency_mhz()) reading.sources["frequency"] = {{"mean_mhz", *mhz}};
    if (const auto count = counters_.throttle_count()) reading.sources["throttling"] = {{"count", *count}};
}

Reading Telemetry::read(std::int64_t worker_pid, const ReadingPlace& place) {
    Reading reading;
    reading.replicate = place.replicate;
    reading.super_round = place.super_round;
    reading.round = place.round;
    // The GPU first: its clocks fall when it idles.
    if (gpu_) {
        if (auto values = gpu_->read(worker_pid); values && !values->empty()) reading.sources["gpu"] = std::move(*values);
    }
    reading.at_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began_).count();
    read_cpu(worker_pid, reading);
    return reading;
}

}  // namespace kestrel::telemetry
