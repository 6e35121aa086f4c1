// Tables of safetensors files.
#include "engine/safetensors.hpp"
#include "tests/fuzz/padded.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size);

int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    using namespace kestrel;
    fuzz::on_input(input, size, [](std::span<const std::byte> bytes) {
        for (const auto& [name, tensor] : read_safetensors("fuzz", bytes)) {
            const std::byte* end = tensor.bytes.data() + tensor.bytes.size();
            if (tensor.bytes.data() < bytes.data() || end > bytes.data() + bytes.size()) __builtin_trap();
        }
    });
    return 0;
}
