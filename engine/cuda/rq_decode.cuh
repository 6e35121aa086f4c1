// Eight consecutive elements of a stored tensor as f32, where planes.hpp put them. Values as dequantise() in engine/tensor_type.hpp.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "engine/tensor_type.hpp"

namespace kestrel::cuda {

// A tensor of `elements`, 16-byte aligned.
struct Stored {
    const std::byte* data;
    std::size_t elements;
};

__device__ inline float half_at(const std::byte* plane, std::size_t index) {
    return __half2float(reinterpret_cast<const __half*>(plane)[index]);
}
__device__ inline float bf16_at(const std::byte* plane, std::size_t index) {
    return __uint_as_float(static_cast<unsigned>(reinterpret_cast<const std::uint16_t*>(plane)[index]) << 16U);
}
__device__ inline unsigned byte_of(uint2 bytes, unsigned i) {
    return (i < 4 ? bytes.x >> (8 * i) : bytes.y >> (8 * (i - 4))) & 0xFFU;
}
__device__ inline uint2 eight_bytes(const std::byte* plane, std::size_t at) {
    return *reinterpret_cast<const uint2*>(plane + at);
}

// One element of a scalar type.
template <TensorType Type>
__device__ inline float decode_one(const std::byte* data, std::size_t at) {
    if constexpr (Type == TensorType::f32) return reinterpret_cast<const float*>(data)[at];
    if constexpr (Type == TensorType::f16) return half_at(data, at);
    return bf16_at(data, at);
}

// Elements at .. at + 7; `at` is a multiple of 8.
template <TensorType Type>
__device__ inline void decode_eight(Stored s, std::size_t at, float* out) {
    const std::size_t blocks = s.elements / 32;
    if constexpr (Type == TensorType::f32) {
        const float4* from = reinterpret_cast<const float4*>(s.data) + at / 4;
        const float4 a = from[0];
        const float4 b = from[1];
        out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
        out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
    } else if constexpr (Type == TensorType::f16 || Type == TensorType::bf16) {
        const uint4 packed = *reinterpret_cast<const uint4*>(s.data + 2 * at);
        const unsigned words[4] = {packed.x, packed.y, packed.z, packed.w};
        for (unsigned i = 0; i < 8; ++i) {
            const auto bits = static_cast<std::uint16_t>(words[i / 2] >> (16 * (i % 2)));
            out[i] = Type == TensorType::f16 ? __half2float(__ushort_as_half(bits)) : __uint_as_float(static_cast<unsigned>(bits) << 16U);
        }
    } else if constexpr (Type == TensorType::q4_0 || Type == TensorType::q4_1) {
        const std::size_t block = at / 32;
        const unsigned shift = at % 32 < 16 ? 0 : 4;
        const uint2 bytes = eight_bytes(s.data, block * 16 + at % 16);
        const std::byte* scales = s.data + blocks * 16;
        for (unsigned i = 0; i < 8; ++i) {
            const auto n = static_cast<float>((byte_of(bytes, i) >> shift) & 0xFU);
            if constexpr (Type == TensorType::q4_0) {
                out[i] = half_at(scales, block) * (n - 8.0F) + 0.0F;  // dequantise() has no negative zeros either
            } else {
                out[i] = half_at(scales, 2 * block) * n + half_at(scales, 2 * block + 1);
            }
        }
    } else if constexpr (Type == TensorType::q8_0) {
        const uint2 bytes = eight_bytes(s.data, at);
        const float d = half_at(s.data + s.elements, at / 32);
        for (unsigned i = 0; i < 8; ++i) out[i] = d * static_cast<float>(static_cast<std::int8_t>(byte_of(bytes, i)));
    } else {  // q6_k; see `sixes` in engine/tensor_type.cpp
        const std::size_t block = at / 256;
        const unsigned in_half = at % 128;
        const unsigned run = in_half / 32;
        const unsigned j = in_half % 32;
        const std::size_t half = at % 256 / 128;
        const std::size_t all = s.elements / 256;
        const uint2 low = eight_bytes(s.data, block * 128 + half * 64 + 32 * (run % 2) + j);
        const uint2 high = eight_bytes(s.data + all * 128, block * 64 + half * 32 + j);
        const auto scale = static_cast<std::int8_t>(s.data[all * 192 + block * 16 + half * 8 + 2 * run + j / 16]);
        const float d = half_at(s.data + all * 208, block) * static_cast<float>(scale);
        for (unsigned i = 0; i < 8; ++i) {
            const unsigned four = (byte_of(low, i) >> (4 * (run / 2))) & 0xFU;
            const unsigned two = (byte_of(high, i) >> (2 * run)) & 3U;
            out[i] = d * (static_cast<float>(four | two << 4U) - 32.0F);
        }
    }
}

}  // namespace kestrel::cuda
