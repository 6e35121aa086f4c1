// Configurations of Hugging Face directories, and the shapes they claim.
#include "engine/json_file.hpp"
#include "engine/model_config.hpp"
#include "engine/weights.hpp"
#include "tests/fuzz/padded.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size);

int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    using namespace kestrel;
    if (size > fuzz::largest_input) return 0;
    try {
        const ModelDims dims = hf_dims(parse_json({reinterpret_cast<const char*>(input), size}, "fuzz"), "fuzz");
        if (WeightLayout(dims, [](const TensorSpec&) { return TensorType::f32; }).bytes() < dims.layers()) __builtin_trap();
    } catch (const EngineError& refusal) {
        if (std::strstr(refusal.what(), "fuzz") == nullptr) __builtin_trap();
    }
    return 0;
}
