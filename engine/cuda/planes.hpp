// How quantised tensors lie in device memory: the parts of ggml's blocks in planes of their own, so that each is aligned for wide loads.
//
// A tensor of n blocks takes as many bytes as in a file. Plane after plane, each holding its part of block 0, 1, 2, ...:
//   q4_0  16 bytes of nibbles; f16 d                q4_1  16 bytes of nibbles; f16 d and m
//   q8_0  32 signed bytes; f16 d                    q6_k  128 bytes of low bits; 64 of high bits; 16 scales; f16 d
// Scalar types have one plane. Inside a part nothing moves.
#pragma once

#include <array>
#include <cstddef>

#include "engine/tensor_type.hpp"

namespace kestrel::cuda {

struct Plane {
    unsigned from;   // where the part begins in a ggml block
    unsigned bytes;  // of the part; 0: there is no such plane
};

inline constexpr std::size_t most_planes = 4;

[[nodiscard]] constexpr std::array<Plane, most_planes> planes_of(TensorType type) {
    switch (type) {
        case TensorType::f16:
        case TensorType::bf16:
            return {{{0, 2}}};
        case TensorType::q4_0:
            return {{{2, 16}, {0, 2}}};
        case TensorType::q4_1:
            return {{{4, 16}, {0, 4}}};
        case TensorType::q8_0:
            return {{{2, 32}, {0, 2}}};
        case TensorType::q6_k:
            return {{{0, 128}, {128, 64}, {192, 16}, {208, 2}}};
        case TensorType::f32:
            break;
    }
    return {{{0, 4}}};
}

}  // namespace kestrel::cuda
