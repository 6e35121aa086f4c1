// CUDA's status codes as EngineError, and the preconditions of launchers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <source_location>

namespace kestrel::cuda {

// Throws EngineError naming `what`, CUDA's own words and the place of the call: KESTREL_OUT_OF_MEMORY, KESTREL_UNSUPPORTED where there is
// no usable device or no code for it, KESTREL_INTERNAL for a wrong call, KESTREL_DEVICE_FAULT for everything else.
void check(cudaError_t status, const char* what, std::source_location where = std::source_location::current());

// Throws EngineError (KESTREL_BAD_ARGUMENT): `precondition` says what a launcher takes.
void require(bool holds, const char* precondition, std::source_location where = std::source_location::current());

// Blocks of `per_block` that cover `count`, both at least 1: the one place where a grid is computed from rows. Throws EngineError if a
// grid cannot have so many.
[[nodiscard]] unsigned blocks_for(std::size_t count, std::size_t per_block, std::source_location where = std::source_location::current());

}  // namespace kestrel::cuda
