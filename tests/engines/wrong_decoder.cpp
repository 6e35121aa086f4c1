// The CPU engine with one mistake: decoding turns queries and keys by other angles than the model says. Every operator alone is right.
#include "engine/cpu/backend.hpp"

namespace kestrel {
namespace {

std::unique_ptr<Backend> open_turned(const Opening& opening) {
    ModelDims dims = opening.dims;
    dims.rope_theta *= 2.0;
    return cpu::library().open({.dims = dims,
                                .layout = opening.layout,
                                .weights = opening.weights,
                                .workspace = opening.workspace,
                                .threads = opening.threads,
                                .max_positions = opening.max_positions,
                                .switches = opening.switches});
}

}  // namespace

const BackendLibrary& backend_library() {
    static const BackendLibrary library = [] {
        BackendLibrary one = cpu::library();
        one.name = "wrong_decoder";
        one.open = open_turned;
        return one;
    }();
    return library;
}

}  // namespace kestrel
