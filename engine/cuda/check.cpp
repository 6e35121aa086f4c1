#include "engine/cuda/check.hpp"

#include <string>

#include "engine/error.hpp"

namespace kestrel::cuda {
namespace {

std::string place(const std::source_location& where) {
    return std::string(" (") + where.file_name() + ":" + std::to_string(where.line()) + ")";
}

kestrel_status status_of(cudaError_t error) {
    switch (error) {
        case cudaErrorMemoryAllocation:
            return KESTREL_OUT_OF_MEMORY;
        case cudaErrorNoDevice:
        case cudaErrorInsufficientDriver:
        case cudaErrorNoKernelImageForDevice:
        case cudaErrorStubLibrary:
        case cudaErrorSystemDriverMismatch:
            return KESTREL_UNSUPPORTED;
        case cudaErrorInvalidValue:
        case cudaErrorInvalidConfiguration:
        case cudaErrorInvalidDeviceFunction:
            return KESTREL_INTERNAL;
        default:
            return KESTREL_DEVICE_FAULT;
    }
}

}  // namespace

void check(cudaError_t status, const char* what, std::source_location where) {
    if (status == cudaSuccess) return;
    fail(status_of(status), std::string(what) + ": " + cudaGetErrorName(status) + ", " + cudaGetErrorString(status) + place(where));
}

void require(bool holds, const char* precondition, std::source_location where) {
    if (!holds) bad_argument(std::string("not met: ") + precondition + place(where));
}

unsigned blocks_for(std::size_t count, std::size_t per_block, std::source_location where) {
    constexpr std::size_t most_blocks = 0x7FFFFFFF;  // of a grid's first dimension
    require(count > 0 && per_block > 0, "a launch covers at least one row", where);
    const std::size_t blocks = (count - 1) / per_block + 1;
    require(blocks <= most_blocks, "a grid has at most 2^31 - 1 blocks", where);
    return static_cast<unsigned>(blocks);
}

}  // namespace kestrel::cuda
