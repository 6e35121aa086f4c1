// The CPU engine with one mistake: attention does not multiply by its gate.
#include <vector>

#include "tests/engines/spoiled_cpu.hpp"

namespace kestrel {
namespace {

void forget_gate(const AttentionCall& call) {
    const std::vector<float> open(call.heads * call.dim, 100.0F);  // whose sigmoid is 1
    AttentionCall ungated = call;
    ungated.gate = open.data();
    cpu::library().operators->attention(ungated);
}

}  // namespace

const BackendLibrary& backend_library() {
    return test::spoiled_cpu("wrong_attention", [](BackendOperators& all) { all.attention = forget_gate; });
}

}  // namespace kestrel
