// A model's weights as the CPU engine holds them: a block as WeightLayout says, its quantised rows as row_layout.hpp says, and `overrun`
// bytes behind it.
#pragma once

#include "engine/backend.hpp"

namespace kestrel::cpu {

extern const WeightArrangement row_arrangement;

}  // namespace kestrel::cpu
