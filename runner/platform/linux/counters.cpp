// The formats are those of proc(5), Documentation/accounting/psi.rst, Documentation/admin-guide/pm/cpufreq.rst (scaling_cur_freq, in kHz)
// and Documentation/ABI/testing/sysfs-devices-system-cpu (core_throttle_count) in the Linux sources.
#include "runner/platform/counters.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <sstream>
#include <utility>

namespace kestrel::platform {
namespace {

std::optional<double> number_in(const std::string& text) {
    double value = 0.0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end == text.data()) return std::nullopt;
    return value;
}

// All values or none: a mean or a sum over fewer files than before would look like a change.
std::optional<double> sum(const std::vector<CounterFile>& files) {
    if (files.empty()) return std::nullopt;
    double total = 0.0;
    for (const CounterFile& file : files) {
        const auto value = file.number();
        if (!value) return std::nullopt;
        total += *value;
    }
    return total;
}

}  // namespace

CounterFile::CounterFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
CounterFile::CounterFile(CounterFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
CounterFile::~CounterFile() {
    if (fd_ >= 0) ::close(fd_);
}

std::optional<std::string> CounterFile::read() const {
    if (fd_ < 0) return std::nullopt;
    std::array<char, 512> text{};
    ssize_t n = 0;
    do {
        n = ::pread(fd_, text.data(), text.size(), 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return std::nullopt;
    return std::string(text.data(), static_cast<std::size_t>(n));
}

std::optional<double> CounterFile::number() const {
    const auto text = read();
    return text ? number_in(*text) : std::nullopt;
}

HostCounters::HostCounters(const std::string& root) : stat_(root + "/proc/stat"), pressure_(root + "/proc/pressure/cpu") {
    const long ticks = ::sysconf(_SC_CLK_TCK);
    if (ticks > 0) tick_s_ = 1.0 / static_cast<double>(ticks);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &set)) continue;
        const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
        if (CounterFile file(folder + "/cpufreq/scaling_cur_freq"); file.is_open()) frequencies_.push_back(std::move(file));
        if (CounterFile file(folder + "/thermal_throttle/core_throttle_count"); file.is_open()) throttles_.push_back(std::move(file));
    }
}

std::optional<HostCounters::CpuTimes> HostCounters::cpu_times() const {
    const auto text = stat_.read();
    if (!text) return std::nullopt;
    // "cpu user nice system idle iowait irq softirq steal ..."; guest time is part of user.
    std::istringstream in(*text);
    std::string label;
    std::array<double, 8> ticks{};
    in >> label;
    for (double& one : ticks) in >> one;
    if (!in || label != "cpu") return std::nullopt;
    return CpuTimes{(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) * tick_s_, ticks[7] * tick_s_};
}

std::optional<double> HostCounters::pressure_s() const {
    const auto text = pressure_.read();
    if (!text || text->rfind("some ", 0) != 0) return std::nullopt;
    const std::string label = "total=";
    const auto at = text->find(label);
    if (at == std::string::npos) return std::nullopt;
    const auto microseconds = number_in(text->substr(at + label.size()));
    if (!microseconds) return std::nullopt;
    return *microseconds / 1e6;
}

std::optional<double> HostCounters::mean_frequency_mhz() const {
    const auto total = sum(frequencies_);
    if (!total) return std::nullopt;
    return *total / static_cast<double>(frequencies_.size()) / 1000.0;
}

std::optional<double> HostCounters::throttle_count() const {
    return sum(throttles_);
}

std::optional<double> process_cpu_s(std::int64_t pid) {
    clockid_t clock{};
    timespec used{};
    if (pid <= 0 || ::clock_getcpuclockid(static_cast<pid_t>(pid), &clock) != 0 || ::clock_gettime(clock, &used) != 0) return std::nullopt;
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

std::int64_t own_pid() {
    return ::getpid();
}

}  // namespace kestrel::platform
