// Counters that the operating system keeps about this machine, cheap enough to be read between two rounds: every file is opened once, and a
// reading is a handful of system calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kestrel::platform {

// A file of the kernel's that is read again and again from its beginning. Absent files read as nothing.
class CounterFile {
  public:
    explicit CounterFile(const std::string& path);
    CounterFile(CounterFile&& other) noexcept;
    CounterFile& operator=(CounterFile&&) = delete;
    CounterFile(const CounterFile&) = delete;
    CounterFile& operator=(const CounterFile&) = delete;
    ~CounterFile();
    [[nodiscard]] bool is_open() const { return fd_ >= 0; }
    [[nodiscard]] std::optional<std::string> read() const;  // its first 512 bytes: all that is needed of any
    [[nodiscard]] std::optional<double> number() const;     // for a file that holds one number

  private:
    int fd_ = -1;
};

class HostCounters {
  public:
    // `root` goes before /proc and /sys.
    explicit HostCounters(const std::string& root = "");

    // Of all CPUs together since the system started, in seconds; the kernel tells them in ticks of 10 ms (USER_HZ) and cuts each of the
    // fields that are added off to whole ticks. Busy: user, nice, system, irq and softirq. Steal: a virtual CPU was ready, but the host
    // ran something else.
    struct CpuTimes {
        double busy_s = 0.0;
        double steal_s = 0.0;
    };
    [[nodiscard]] std::optional<CpuTimes> cpu_times() const;

    // Seconds in which at least one task waited for a CPU (PSI "some", to the microsecond).
    [[nodiscard]] std::optional<double> pressure_s() const;

    // Mean over the CPUs that this process may use, in MHz; absent on most virtual machines.
    [[nodiscard]] std::optional<double> mean_frequency_mhz() const;

    // How often any core was throttled because of its temperature, all cores added; absent on virtual machines and some makes.
    [[nodiscard]] std::optional<double> throttle_count() const;

  private:
    CounterFile stat_;
    CounterFile pressure_;
    std::vector<CounterFile> frequencies_;
    std::vector<CounterFile> throttles_;
    double tick_s_ = 0.01;
};

// CPU time of all threads of a process so far, to the nanosecond; absent once it is gone.
[[nodiscard]] std::optional<double> process_cpu_s(std::int64_t pid);
[[nodiscard]] std::int64_t own_pid();

}  // namespace kestrel::platform
