// The CPU engine's workspace, and behind it what only a device needs.
#pragma once

#include <algorithm>

#include "engine/cpu/workspace.hpp"
#include "engine/cuda/split.hpp"

namespace kestrel::cuda {

struct WorkspaceLayout : cpu::WorkspaceLayout {
    WorkspaceLayout(const ModelDims& dims, std::uint32_t max_positions)
        : cpu::WorkspaceLayout(dims, max_positions), parts(bytes / sizeof(float)) {
        const std::size_t longest = std::max({std::size_t{dims.hidden}, std::size_t{dims.intermediate}, std::size_t{dims.value_width()},
                                              std::size_t{dims.heads} * dims.head_dim});
        other_parts = parts + split_floats(longest);
        bytes += 2 * split_floats(longest) * sizeof(float);
    }
    std::size_t parts;        // the vector that the next products read, split (split.hpp)
    std::size_t other_parts;  // likewise, where the one before it is still being read
};

}  // namespace kestrel::cuda
