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
[[nodiscard]] double load_average();  // 1 minute; negative if unknown

[[nodiscard]] std::optional<std::string> read_small_file(const std::string& path);

// Zeroed pages, aligned to at least 4096; released on destruction. Throws Error(invalid) with the size if there is not enough.
class HostMemory {
  public:
    explicit HostMemory(std::size_t bytes);
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    ~HostMemory();
    [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
    [[nodiscard]] std::size_t size() const { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace kestrel::platform
