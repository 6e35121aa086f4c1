// GGUF headers, and the shapes they claim.
#include "engine/gguf.hpp"
#include "engine/gguf_model.hpp"
#include "engine/weights.hpp"
#include "tests/fuzz/padded.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size);

int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    using namespace kestrel;
    fuzz::on_input(input, size, [](std::span<const std::byte> bytes) {
        const GgufHeader header("fuzz", bytes);
        for (const auto& [name, tensor] : header.tensors()) {
            const std::byte* end = tensor.bytes.data() + tensor.bytes.size();
            if (tensor.bytes.data() < bytes.data() || end > bytes.data() + bytes.size()) __builtin_trap();
        }
        const ModelDims dims = gguf_dims(header);
        if (WeightLayout(dims, [](const TensorSpec&) { return TensorType::f32; }).bytes() < dims.layers()) __builtin_trap();
    });
    return 0;
}
