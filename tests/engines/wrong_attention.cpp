// The CPU engine with one mistake: attention does not multiply by its gate.
#include <vector>

#include "engine/cpu/backend.hpp"

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
    static const BackendOperators operators = [] {
        BackendOperators all = *cpu::library().operators;
        all.attention = forget_gate;
        return all;
    }();
    static const BackendLibrary library = [] {
        BackendLibrary one = cpu::library();
        one.name = "wrong_attention";
        one.operators = &operators;
        return one;
    }();
    return library;
}

}  // namespace kestrel
