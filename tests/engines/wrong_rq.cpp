// The CPU engine with one mistake: products take the two elements of a q4_0 byte for each other.
#include <vector>

#include "tests/engines/spoiled_cpu.hpp"

namespace kestrel {
namespace {

void swap_nibbles(const QuantisedGemvCall& call) {
    QuantisedGemvCall swapped = call;
    const TensorTypeInfo& info = info_of(call.a.type);
    std::vector<std::byte> stored(call.a.data, call.a.data + call.rows * bytes_of(info, call.cols));
    if (call.a.type == TensorType::q4_0) {
        for (std::size_t i = 0; i < stored.size(); ++i) {
            const bool scale = i % info.block_bytes < 2;
            if (!scale) stored[i] = (stored[i] << 4) | (stored[i] >> 4);
        }
    }
    swapped.a.data = stored.data();
    cpu::library().operators->q_gemv(swapped);
}

}  // namespace

const BackendLibrary& backend_library() {
    return test::spoiled_cpu("wrong_rq", [](BackendOperators& all) { all.q_gemv = swap_nibbles; });
}

}  // namespace kestrel
