// Fork-join over a fixed set of threads. A decoded token has hundreds of parallel regions of a few microseconds, so waiting
// threads spin for a short while before they sleep in the kernel; between calls all of them sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace kestrel::cpu {

// Half-open range of items that one thread works on.
struct Range {
    std::size_t first = 0;
    std::size_t last = 0;
};

// Share `part` of `parts` of `items`, in whole granules, so that neighbours do not write to one cache line.
[[nodiscard]] Range share_of(std::size_t items, std::size_t granule, std::size_t part, std::size_t parts) noexcept;

// Processors this process may run on, at least 1.
[[nodiscard]] std::uint32_t available_processors();

class ThreadPool {
  public:
    // The calling thread is one of `threads` (at least 1). Throws EngineError if a thread cannot be started.
    explicit ThreadPool(std::uint32_t threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;  // workers hold its address
    ThreadPool& operator=(const ThreadPool&) = delete;

    [[nodiscard]] std::uint32_t threads() const noexcept { return static_cast<std::uint32_t>(workers_.size()) + 1; }

    // One parallel region: calls body(part, parts) once for each part, part 0 on the caller; returns when all are done.
    // The body must not throw. Everything written before is visible inside, everything written inside is visible after.
    template <class Body>
    void run(const Body& body) {
        fork_join([](const void* context, std::size_t part, std::size_t parts) { (*static_cast<const Body*>(context))(part, parts); },
                  &body);
    }

  private:
    using Task = void (*)(const void* context, std::size_t part, std::size_t parts);

    struct alignas(64) Worker {
        std::atomic<std::uint32_t> finished{0};  // last region this worker completed
        std::thread thread;
    };

    void fork_join(Task task, const void* context);
    void work(Worker& self, std::size_t part);
    void stop() noexcept;

    bool crowded_;  // more threads than processors
    alignas(64) std::atomic<std::uint32_t> region_{0};
    Task task_ = nullptr;  // null: the workers leave
    const void* context_ = nullptr;
    alignas(64) std::atomic<std::uint32_t> sleeping_workers_{0};
    alignas(64) std::atomic<bool> caller_sleeps_{false};
    std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace kestrel::cpu
