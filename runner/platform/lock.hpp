// One runner per device on this machine.
#pragma once

#include <string>

namespace kestrel::platform {

// An exclusive advisory lock, held until this object and every process that inherited its descriptor are gone.
class DeviceLock {
  public:
    // Throws Error(invalid) saying who holds it, if another runner does.
    explicit DeviceLock(const std::string& device);
    DeviceLock(const DeviceLock&) = delete;
    DeviceLock& operator=(const DeviceLock&) = delete;
    ~DeviceLock();
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
    int fd_ = -1;
};

}  // namespace kestrel::platform
