// Where exceptions end: between C++ and the C interface.
#pragma once

#include "engine/abi.h"

namespace kestrel {

// Runs body(context); an exception becomes a status, and its text the calling thread's last error.
kestrel_status run_at_boundary(void (*body)(const void* context), const void* context) noexcept;

template <class Body>
kestrel_status guarded(const Body& body) noexcept {
    return run_at_boundary([](const void* context) { (*static_cast<const Body*>(context))(); }, &body);
}

}  // namespace kestrel
