// Writing activations as split.hpp says.
#pragma once

#include <cuda_bf16.h>

#include "engine/cuda/split.hpp"

namespace kestrel::cuda {

// Each remainder is exact: it has no more bits than f32 holds below the part that was taken off.
__device__ inline void store_split(float x, std::size_t col, __nv_bfloat16* parts) {
#pragma unroll
    for (unsigned part = 0; part < split_parts; ++part) {
        const __nv_bfloat16 taken = __float2bfloat16_rn(x);
        parts[part_place(col, part)] = taken;
        x -= __bfloat162float(taken);
    }
}

inline __nv_bfloat16* parts_at(float* parts) {
    return reinterpret_cast<__nv_bfloat16*>(parts);
}

}  // namespace kestrel::cuda
