// The worker's side: the only process that loads engines.
#pragma once

namespace kestrel::session {

// Reads one job from the channel on file descriptor 3, does it, and leaves with _exit: engines are never unloaded.
[[noreturn]] void worker_main();

}  // namespace kestrel::session
