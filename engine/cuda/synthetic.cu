// Synthetic weights made where they are used: the definition in engine/synthetic.hpp, whose every step is exact, so the bytes are the
// host's.
#include "engine/cuda/launch.hpp"

#include <cuda_fp16.h>

#include "engine/cuda/check.hpp"

namespace kestrel::cuda {

constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ULL;
constexpr unsigned synthetic_threads = 256;

__device__ inline std::uint64_t synthetic_word(std::uint64_t key, std::uint64_t element) {
    std::uint64_t x = key + (element + 1) * golden;  // then the finaliser of splitmix64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

__device__ inline int synthetic_level(const SyntheticValues& v, std::uint64_t element) {
    return static_cast<int>(((synthetic_word(v.key, element) >> 40) * 15) >> 24) - 7;
}

__device__ inline float synthetic_value(const SyntheticValues& v, std::uint64_t element) {
    if (v.levels) return static_cast<float>(synthetic_level(v, element)) * v.unit;
    const auto step = static_cast<int>(synthetic_word(v.key, element) >> 48) - (1 << 15);
    return v.centre + static_cast<float>(step) * 0x1p-15F * v.unit;
}

__device__ inline void put_half(std::byte* at, float value) {
    *reinterpret_cast<__half*>(at) = __float2half(value);  // parts of blocks begin at even addresses
}

// What a thread makes: an element of f32, f16, bf16 and q8_0, two of q4_0 and q4_1, four of q6_k.
template <TensorType Type>
inline constexpr unsigned elements_per_thread = Type == TensorType::q6_k                               ? 4
                                                : Type == TensorType::q4_0 || Type == TensorType::q4_1 ? 2
                                                                                                       : 1;

// A byte of 32-element blocks; the block's first thread also writes its scale, and its offset where it has one.
template <TensorType Type>
__device__ inline void put_small_block(const SyntheticValues& v, std::uint64_t thread, std::byte* out) {
    constexpr unsigned in_block = 32 / elements_per_thread<Type>;
    constexpr unsigned head = Type == TensorType::q4_1 ? 4 : 2;
    const std::uint64_t block = thread / in_block;
    const unsigned j = thread % in_block;
    std::byte* at = out + block * (head + in_block);
    if (j == 0) put_half(at, v.unit);
    if (Type == TensorType::q4_1 && j == 0) put_half(at + 2, -8.0F * v.unit);
    const int first = synthetic_level(v, block * 32 + j);
    if constexpr (Type == TensorType::q8_0) {
        at[head + j] = static_cast<std::byte>(first);
    } else {
        at[head + j] = static_cast<std::byte>((first + 8) | (synthetic_level(v, block * 32 + j + 16) + 8) << 4);
    }
}

// Column j of half a 256-element block: an element of each of its four runs of 32, in two low bytes and a high one.
__device__ inline void put_q6_k(const SyntheticValues& v, std::uint64_t thread, std::byte* out) {
    const std::uint64_t block = thread / 64;
    const unsigned half = thread % 64 / 32;
    const unsigned j = thread % 32;
    std::byte* at = out + block * 210;
    unsigned low[2] = {};
    unsigned high = 0;
    for (unsigned run = 0; run < 4; ++run) {
        const auto number = static_cast<unsigned>(synthetic_level(v, block * 256 + half * 128 + run * 32 + j) + 32);
        low[run % 2] |= (number & 0xFU) << (4 * (run / 2));
        high |= (number >> 4U) << (2 * run);
    }
    at[64 * half + j] = static_cast<std::byte>(low[0]);
    at[64 * half + 32 + j] = static_cast<std::byte>(low[1]);
    at[128 + 32 * half + j] = static_cast<std::byte>(high);
    if (thread % 64 < 16) at[192 + thread % 64] = std::byte{1};
    if (thread % 64 == 0) put_half(at + 208, v.unit);
}

template <TensorType Type>
__global__ void k_synthetic(SyntheticValues v, std::uint64_t threads, std::uint64_t rows, std::uint64_t cols, bool transposed,
                            std::byte* out) {
    const std::uint64_t i = std::uint64_t{blockIdx.x} * synthetic_threads + threadIdx.x;
    if (i >= threads) return;  // the last block's surplus threads
    if constexpr (Type == TensorType::f32) {
        reinterpret_cast<float*>(out)[transposed ? i % cols * rows + i / cols : i] = synthetic_value(v, i);
    } else if constexpr (Type == TensorType::f16) {
        put_half(out + 2 * i, synthetic_value(v, i));
    } else if constexpr (Type == TensorType::bf16) {  // three significant bits: nothing is cut off
        reinterpret_cast<std::uint16_t*>(out)[i] = static_cast<std::uint16_t>(__float_as_uint(synthetic_value(v, i)) >> 16U);
    } else if constexpr (Type == TensorType::q6_k) {
        put_q6_k(v, i, out);
    } else {
        put_small_block<Type>(v, i, out);
    }
}

template <TensorType Type>
void launch_synthetic_as(const SyntheticValues& values, std::size_t rows, std::size_t cols, bool transposed, std::byte* out,
                         cudaStream_t stream) {
    const std::size_t threads = rows * cols / elements_per_thread<Type>;
    k_synthetic<Type>
        <<<blocks_for(threads, synthetic_threads), synthetic_threads, 0, stream>>>(values, threads, rows, cols, transposed, out);
    check_launch("k_synthetic");
}

void launch_synthetic(const SyntheticValues& values, TensorType type, std::size_t rows, std::size_t cols, bool transposed, std::byte* out,
                      cudaStream_t stream) {
    const TensorTypeInfo& info = info_of(type);
    require(rows > 0 && rows < 0x40000000 && cols > 0 && cols < 0x40000000, "synthetic: 1 to 2^30 - 1 rows and columns");
    require(cols % info.block_elements == 0, "synthetic: rows are whole blocks of the type");
    require(type == TensorType::f32 || (values.levels && !transposed), "synthetic: levels, not transposed, in types other than f32");
    switch (type) {
        case TensorType::f32:
            return launch_synthetic_as<TensorType::f32>(values, rows, cols, transposed, out, stream);
        case TensorType::f16:
            return launch_synthetic_as<TensorType::f16>(values, rows, cols, transposed, out, stream);
        case TensorType::bf16:
            return launch_synthetic_as<TensorType::bf16>(values, rows, cols, transposed, out, stream);
        case TensorType::q4_0:
            return launch_synthetic_as<TensorType::q4_0>(values, rows, cols, transposed, out, stream);
        case TensorType::q4_1:
            return launch_synthetic_as<TensorType::q4_1>(values, rows, cols, transposed, out, stream);
        case TensorType::q8_0:
            return launch_synthetic_as<TensorType::q8_0>(values, rows, cols, transposed, out, stream);
        case TensorType::q6_k:
            return launch_synthetic_as<TensorType::q6_k>(values, rows, cols, transposed, out, stream);
    }
    require(false, "synthetic: a known type");
}

}  // namespace kestrel::cuda
