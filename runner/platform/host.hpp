// What can be read about this machine and about this process's own files.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace kestrel::platform {

[[nodiscard]] std::string executable_path();
[[nodiscard]] std::string host_name();
[[nodiscard]] std::string user_state_directory();  // $XDG_STATE_HOME, else ~/.local/state

// Stable facts of machine and software that a timing depends on: names as in record.hpp's Environment.
[[nodiscard]] std::map<std::string, std::string> environment_facts();

// "cpu: <model>, <n> threads"
[[nodiscard]] std::string cpu_device_name();
[[nodiscard]] int usable_cpus();

// Cores that anybody kept busy during the next `interval_ms`, e.g. 0.8; absent if the system does not tell. The load average would still
// show what ended a minute ago.
[[nodiscard]] std::optional<double> busy_cores(int interval_ms);

[[nodiscard]] std::optional<std::string> read_small_file(const std::string& path);

// Zeroed memory, aligned to large pages and made of them where the system agrees; released on destruction. Throws Error(invalid) with the
// size if there is not enough.
class HostMemory {
  public:
    explicit HostMemory(std::size_t bytes);
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    ~HostMemory();
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return bytes_; }

  private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    void* mapped_ = nullptr;
    std::size_t mapped_bytes_ = 0;
};

}  // namespace kestrel::platform
