// Device memory that a MemoryBlock owns.
#pragma once

#include <cstdint>
#include <string>

#include "engine/memory.hpp"

namespace kestrel::cuda {

inline constexpr std::size_t device_alignment = 256;  // of cudaMalloc

// Throws EngineError (KESTREL_OUT_OF_MEMORY) naming `purpose`, bytes needed and available.
[[nodiscard]] MemoryBlock allocate_device(std::uint64_t bytes, const std::string& purpose);

}  // namespace kestrel::cuda
