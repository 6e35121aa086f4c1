// Work on a block of memory by all threads that a job may use; they end with the call, so nothing runs when windows are timed.
#pragma once

#include <cstddef>
#include <functional>

namespace kestrel::session {

// Calls body(item, worker) once for each item of 0..items-1, on up to `threads` threads, of which worker 0 is the caller. When a body
// throws no further items are begun, and the first exception is thrown again once all threads are back.
void for_each_parallel(std::size_t items, int threads, const std::function<void(std::size_t item, std::size_t worker)>& body);

}  // namespace kestrel::session
