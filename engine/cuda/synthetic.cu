// Synthetic weights made where they are used: the definition in engine/synthetic.hpp, whose every step is exact.
#include "engine/cuda/launch.hpp"

#include "engine/cuda/check.hpp"
#include "engine/cuda/rq_decode.cuh"

namespace kestrel::cuda {

constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ULL;
constexpr unsigned synthetic_threads = 256;

__device__ inline std::uint64_t synthetic_word(std::uint64_t key, std::uint64_t element) {
    std::uint64_t x = key + (element + 1) * golden;  // then the finaliser of splitmix64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

__device__ inline int synthetic_level(std::uint64_t word) {
    return static_cast<int>(((word >> 40) * 15) >> 24) - 7;
}

__device__ inline float synthetic_value(const SyntheticValues& v, std::uint64_t element) {
    const std::uint64_t word = synthetic_word(v.key, element);
    if (v.levels) return static_cast<float>(synthetic_level(word)) * v.unit;
    return v.centre + static_cast<float>(static_cast<int>(word >> 48) - (1 << 15)) * 0x1p-15F * v.unit;
}

__global__ void k_synthetic_f32(SyntheticValues v, std::uint64_t rows, std::uint64_t cols, bool transposed, float* out) {
    const std::uint64_t e = std::uint64_t{blockIdx.x} * synthetic_threads + threadIdx.x;
    if (e >= rows * cols) return;  // the last block's surplus threads
    out[transposed ? e % cols * rows + e / cols : e] = synthetic_value(v, e);
}

// One thread per block of 32.
__global__ void k_synthetic_q4_0(SyntheticValues v, std::uint64_t blocks, uint4* nibbles, __half* scales) {
    const std::uint64_t block = std::uint64_t{blockIdx.x} * synthetic_threads + threadIdx.x;
    if (block >= blocks) return;  // the last block's surplus threads
    unsigned words[4] = {};
    for (unsigned j = 0; j < 16; ++j) {
        const auto low = static_cast<unsigned>(synthetic_level(synthetic_word(v.key, block * 32 + j)) + 8);
        const auto high = static_cast<unsigned>(synthetic_level(synthetic_word(v.key, block * 32 + j + 16)) + 8);
        words[j / 4] |= (low | high << 4U) << (8 * (j % 4));
    }
    nibbles[block] = make_uint4(words[0], words[1], words[2], words[3]);
    scales[block] = __float2half(v.unit);
}

void launch_synthetic_f32(const SyntheticValues& values, std::size_t rows, std::size_t cols, bool transposed, float* out,
                          cudaStream_t stream) {
    k_synthetic_f32<<<blocks_for(rows * cols, synthetic_threads), synthetic_threads, 0, stream>>>(values, rows, cols, transposed, out);
    check_launch("k_synthetic_f32");
}

void launch_synthetic_q4_0(const SyntheticValues& values, std::size_t elements, std::byte* out, cudaStream_t stream) {
    require(values.levels && elements % 32 == 0, "synthetic q4_0: levels, in whole blocks of 32");
    const std::size_t blocks = elements / 32;
    k_synthetic_q4_0<<<blocks_for(blocks, synthetic_threads), synthetic_threads, 0, stream>>>(values, blocks, reinterpret_cast<uint4*>(out),
                                                                                              reinterpret_cast<__half*>(out + blocks * 16));
    check_launch("k_synthetic_q4_0");
}

}  // namespace kestrel::cuda
