// Models described by a *.toml file: dimensions and a seed; the weights follow from both.
//
// Definition, so that another engine makes the same bits. Tensor number t (position in WeightLayout, from 0), element e
// (canonical row-major): u = mix(mix(seed + (t + 1) G) + (e + 1) G) with G = 0x9E3779B97F4A7C15 and 64-bit wrap-around.
//   levels(s): (((u >> 40) * 15) >> 24) - 7, one of -7..7, times 2^-s          matrices, so that 4-bit blocks hold them exactly
//   spread(c, s): c + ((u >> 48) - 2^15) 2^-(15 + s), in [c - 2^-s, c + 2^-s)  everything else
// All of it is exact in f32. Scales by role: see scale_of() in synthetic.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/cpu/thread_pool.hpp"
#include "engine/model_config.hpp"
#include "engine/weights.hpp"

namespace kestrel {

struct ModelDescription {
    std::string name;
    std::uint64_t seed = 0;
    ModelDims dims;
};

// Throws EngineError (KESTREL_BAD_MODEL) naming the file, the key, what was expected and what was found.
[[nodiscard]] ModelDescription read_description(const std::filesystem::path& file);

// Fills `block` (layout.bytes()) with the weights of `seed`; the result does not depend on the pool.
void make_synthetic_weights(std::uint64_t seed, const WeightLayout& layout, cpu::ThreadPool& pool, float* block);

}  // namespace kestrel
