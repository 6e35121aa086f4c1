#include "runner/session/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace kestrel::session {

void for_each_parallel(std::size_t items, int threads, const std::function<void(std::size_t item, std::size_t worker)>& body) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr first;
    const auto work = [&](std::size_t worker) {
        try {
            for (std::size_t item = next.fetch_add(1); item < items; item = next.fetch_add(1)) body(item, worker);
        } catch (...) {
            next.store(items);
            const std::lock_guard guard(mutex);
            if (!first) first = std::current_exception();
        }
    };
    const std::size_t wanted = std::min<std::size_t>(items, static_cast<std::size_t>(std::max(threads, 1)));
    {
        std::vector<std::jthread> others;
        try {
            for (std::size_t worker = 1; worker < wanted; ++worker) others.emplace_back(work, worker);
        } catch (const std::system_error&) {
            // Fewer threads than hoped for do the same work.
        }
        work(0);
    }
    if (first) std::rethrow_exception(first);
}

}  // namespace kestrel::session
