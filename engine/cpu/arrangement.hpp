// A model's weights as the CPU engine holds them: a block as WeightLayout says, but for the quantised rows, which are as row_layout.hpp
// says, and with room behind it for their overrun.
#pragma once

#include "engine/backend.hpp"

namespace kestrel::cpu {

extern const WeightArrangement row_arrangement;

}  // namespace kestrel::cpu
