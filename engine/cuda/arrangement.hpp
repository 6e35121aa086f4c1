// Weights between a host block (WeightLayout) and device memory (planes.hpp): same offsets, same bytes in all, blocks taken apart.
#pragma once

#include "engine/backend.hpp"

namespace kestrel::cuda {

[[nodiscard]] const WeightArrangement& plane_arrangement();

}  // namespace kestrel::cuda
