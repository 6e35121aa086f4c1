// Single operators on host data, through the launchers that decode uses.
#pragma once

#include "engine/operators.hpp"

namespace kestrel::cuda {

extern const BackendOperators device_operators;

}  // namespace kestrel::cuda
