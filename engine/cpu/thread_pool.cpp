#include "engine/cpu/thread_pool.hpp"

#include <sched.h>

#include <system_error>

#include "engine/error.hpp"

namespace kestrel::cpu {
namespace {

void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Counted, not timed: the engine owns no clock. A pause takes 10 to 50 ns on today's processors, so a thread that waits spins for
// 10 to 50 us, longer than the serial work between two regions, and is asleep well before 200 us have passed. It never yields:
// on a machine with other work a yield gives away a whole time slice, while a thread that slept is woken with priority and onto an idle
// processor, if there is one.
constexpr int spins_alone = 1000;
// Where threads share a processor, spinning only keeps the awaited one from running. That is so with more threads than processors, and
// probably so for a while after a wait that outlasted its spins.
constexpr int spins_crowded = 20;
constexpr std::uint32_t crowded_regions = 256;

// True as soon as `done` is; false if it was not for `spins` looks.
template <class Done>
bool spin_until(int spins, const Done& done) noexcept {
    for (int i = 0; i < spins; ++i) {
        if (done()) return true;
        relax();
    }
    return false;
}

}  // namespace

Range share_of(std::size_t items, std::size_t granule, std::size_t part, std::size_t parts) noexcept {
    const std::size_t granules = (items + granule - 1) / granule;
    const auto edge = [&](std::size_t p) {
        const std::size_t item = granules * p / parts * granule;
        return item < items ? item : items;
    };
    return {edge(part), edge(part + 1)};
}

std::uint32_t available_processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        const int count = CPU_COUNT(&set);
        if (count > 0) return static_cast<std::uint32_t>(count);
    }
    const unsigned int count = std::thread::hardware_concurrency();
    return count > 0 ? count : 1;
}

ThreadPool::ThreadPool(std::uint32_t threads) : always_crowded_(threads > available_processors()) {
    spins_.store(always_crowded_ ? spins_crowded : spins_alone);
    try {
        for (std::uint32_t part = 1; part < threads; ++part) {
            workers_.push_back(std::make_unique<Worker>());
            Worker& worker = *workers_.back();
            worker.thread = std::thread([this, &worker, part] { work(worker, part); });
        }
    } catch (const std::system_error& error) {
        stop();
        fail(KESTREL_UNSUPPORTED, "cannot start " + std::to_string(threads) + " threads (" + error.what() + "); ask for fewer");
    }
}

ThreadPool::~ThreadPool() {
    stop();
}

void ThreadPool::stop() noexcept {
    task_ = nullptr;
    region_.fetch_add(1);
    region_.notify_all();
    for (const auto& worker : workers_) {
        if (worker->thread.joinable()) worker->thread.join();
    }
    workers_.clear();
}

void ThreadPool::fork_join(Task task, const void* context) {
    const std::size_t parts = workers_.size() + 1;
    if (parts == 1) {
        task(context, 0, 1);
        return;
    }
    if (crowded_left_ > 0 && --crowded_left_ == 0 && !always_crowded_) spins_.store(spins_alone, std::memory_order_relaxed);
    task_ = task;
    context_ = context;
    // Sequentially consistent against the worker's "sleeping, then look again": one of the two sees the other.
    const std::uint32_t region = region_.fetch_add(1) + 1;
    if (sleeping_workers_.load() != 0) region_.notify_all();
    task(context, 0, parts);

    for (const auto& worker : workers_) {
        const auto done = [&] { return worker->finished.load(std::memory_order_acquire) == region; };
        if (spin_until(spins_.load(std::memory_order_relaxed), done)) continue;
        crowded_left_ = crowded_regions;
        spins_.store(spins_crowded, std::memory_order_relaxed);
        caller_sleeps_.store(true);
        for (std::uint32_t seen = worker->finished.load(); seen != region; seen = worker->finished.load()) {
            worker->finished.wait(seen);
        }
        caller_sleeps_.store(false);
    }
}

void ThreadPool::work(Worker& self, std::size_t part) {
    std::uint32_t seen = 0;
    for (;;) {
        const auto started = [&] { return region_.load(std::memory_order_acquire) != seen; };
        if (!spin_until(spins_.load(std::memory_order_relaxed), started)) {
            sleeping_workers_.fetch_add(1);
            region_.wait(seen);
            sleeping_workers_.fetch_sub(1);
        }
        ++seen;  // regions are joined one by one, so exactly one has begun
        if (task_ == nullptr) return;
        task_(context_, part, workers_.size() + 1);
        self.finished.store(seen);
        if (caller_sleeps_.load()) self.finished.notify_one();
    }
}

}  // namespace kestrel::cpu
