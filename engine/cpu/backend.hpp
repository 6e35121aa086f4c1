// The CPU backend, under a name of its own: an engine library that wraps it is linked with it too.
#pragma once

#include "engine/backend.hpp"

namespace kestrel::cpu {

// Constant, and the same in every call.
[[nodiscard]] const BackendLibrary& library();

}  // namespace kestrel::cpu
