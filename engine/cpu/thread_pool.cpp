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

// Counted, not timed: the engine owns no clock. A pause takes 10 to 50 ns on today's processors, so all of it lasts 10 to 50 us: longer
// than the serial work between two regions of a small model, because waking a sleeping thread costs tens of microseconds on a virtual
// machine, and far less than the 200 us after which an idle engine must be quiet. The eager part covers a region's usual imbalance; the
// yields after it let the awaited thread run if both share one processor.
constexpr int eager_spins = 400;
constexpr int patient_rounds = 8;
constexpr int spins_per_round = 64;
constexpr int eager_spins_crowded = 20;  // more threads than processors: spinning keeps the awaited thread from running

// True as soon as `done` is; false if it never was while spinning.
template <class Done>
bool spin_until(bool crowded, const Done& done) noexcept {
    const auto look = [&](int times) {
        for (int i = 0; i < times; ++i) {
            if (done()) return true;
            relax();
        }
        return done();
    };
    if (look(crowded ? eager_spins_crowded : eager_spins)) return true;
    for (int round = 0; round < patient_rounds; ++round) {
        std::this_thread::yield();
        if (look(crowded ? 1 : spins_per_round)) return true;
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

ThreadPool::ThreadPool(std::uint32_t threads) : crowded_(threads > available_processors()) {
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
    task_ = task;
    context_ = context;
    // Sequentially consistent against the worker's "sleeping, then look again": one of the two sees the other.
    const std::uint32_t region = region_.fetch_add(1) + 1;
    if (sleeping_workers_.load() != 0) region_.notify_all();
    task(context, 0, parts);

    for (const auto& worker : workers_) {
        const auto done = [&] { return worker->finished.load(std::memory_order_acquire) == region; };
        if (spin_until(crowded_, done)) continue;
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
        if (!spin_until(crowded_, started)) {
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
