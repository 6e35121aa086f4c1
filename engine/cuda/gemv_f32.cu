#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/kernel_launch.cuh"
#include "engine/cuda/reduce.cuh"

namespace kestrel::cuda {

#include "engine/cuda/f32_gemv_twin.inc"

}  // namespace kestrel::cuda
