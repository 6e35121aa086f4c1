// A checkpoint loaded by the engine's own code, for tests that are linked with it instead of loading the library.
#pragma once

#include <filesystem>
#include <utility>

#include "engine/memory.hpp"
#include "engine/model_config.hpp"
#include "engine/model_source.hpp"
#include "engine/weights.hpp"

namespace kestrel::test {

struct HostModel {
    ModelDims dims;
    WeightLayout layout;
    MemoryBlock block;
};

inline HostModel load_host_model(const std::filesystem::path& path) {
    const auto source = open_model(path);
    WeightLayout layout = layout_of(*source, WeightFormat::stored);
    MemoryBlock block = MemoryBlock::allocate(layout.bytes(), "weights");
    source->load(layout, 1, block.data());
    return {source->dims, std::move(layout), std::move(block)};
}

// The rows of in_proj_qkv that make queries and keys, in every layer; they must be f32.
inline void scale_query_and_key(HostModel& model, float factor) {
    const Weights weights(model.dims, model.layout, model.block.data());
    for (std::uint32_t layer = 0; layer < model.dims.layers(); ++layer) {
        if (model.dims.full_attention[layer]) continue;
        auto* rows = const_cast<float*>(weights.at(layer, Role::qkv).f32());  // the block is the model's own
        for (std::size_t i = 0; i < 2 * model.dims.key_width() * model.dims.hidden; ++i) rows[i] *= factor;
    }
}

}  // namespace kestrel::test
