// Models described by a *.toml file: dimensions and a seed; the weights follow from both.
//
// Definition, so that another engine makes the same bits. Tensor number t (position in WeightLayout, from 0), element e
// (canonical row-major): u = mix(mix(seed + (t + 1) G) + (e + 1) G) with G = 0x9E3779B97F4A7C15 and 64-bit wrap-around.
//   levels(s): (((u >> 40) * 15) >> 24) - 7, one of -7..7, times 2^-s          matrices, so that 4-bit blocks hold them exactly
//   spread(c, s): c + ((u >> 48) - 2^15) 2^-(15 + s), in [c - 2^-s, c + 2^-s)  everything else
// All of it is exact in f32, and the levels in every type of tensor_type.hpp, so matrices have the same values in all of them
// (synthetic_blocks.hpp). Nothing needs a transcendental function: values are those that the block holds (weights.hpp), so norms are
// spread around 1 and decay rates are spread(-1.25, 0). Scales by role: see scale_of() in synthetic.cpp.
//
// Tables of a description: [dims], and optional [weights] with the types of the matrices: `matrices` of all, `head` of the output head,
// which in a model with a tied head is also the embedding; both f32 if not given.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/model_source.hpp"

namespace kestrel {

struct ModelDescription {
    std::string name;
    std::uint64_t seed = 0;
    ModelDims dims;
    TensorType matrices = TensorType::f32;
    TensorType head = TensorType::f32;
};

// What the values of a tensor follow from.
struct SyntheticTensor {
    std::uint64_t key = 0;  // u = mix(key + (e + 1) G)
    bool levels = false;    // levels(shift), or spread(centre, shift)
    float centre = 0.0F;
    int shift = 0;                     // -14 to 14
    [[nodiscard]] float unit() const;  // 2^-shift
};

// Tensor `number` of a layout, from 0.
[[nodiscard]] SyntheticTensor synthetic_tensor(std::uint64_t seed, std::uint64_t number, const TensorSpec& tensor);

// Throws EngineError (KESTREL_BAD_MODEL) naming the file, the key, what was expected and what was found.
[[nodiscard]] ModelDescription read_description(const std::filesystem::path& file);

[[nodiscard]] std::unique_ptr<ModelSource> open_description(const std::filesystem::path& file);

}  // namespace kestrel
