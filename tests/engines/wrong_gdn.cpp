// The CPU engine with one mistake: a recurrent step reads its output from the state before the update. All variants do, so they agree with
// one another, and only a comparison with another engine shows it.
#include <vector>

#include "tests/engines/spoiled_cpu.hpp"

namespace kestrel {
namespace {

void read_old_state(const GdnDeltaCall& call) {
    const std::vector<float> old(call.state, call.state + call.heads * call.kd * call.vd);
    cpu::library().operators->gdn_delta(call);
    for (std::size_t h = 0; h < call.heads; ++h) {
        const std::size_t key = call.order == HeadOrder::tiled ? h % call.k_heads : h / (call.heads / call.k_heads);
        for (std::size_t j = 0; j < call.vd; ++j) {
            double sum = 0.0;
            for (std::size_t i = 0; i < call.kd; ++i) {
                sum += static_cast<double>(old[(h * call.kd + i) * call.vd + j]) * static_cast<double>(call.q[key * call.kd + i]);
            }
            call.out[h * call.vd + j] = static_cast<float>(sum);
        }
    }
}

}  // namespace

const BackendLibrary& backend_library() {
    return test::spoiled_cpu("wrong_gdn", [](BackendOperators& all) { all.gdn_delta = read_old_state; });
}

}  // namespace kestrel
