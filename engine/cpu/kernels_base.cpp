// The kernels for the instruction set that every processor of the architecture has.
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <cmath>
#include <cstddef>

#include "engine/cpu/kernels.hpp"

#define KESTREL_ISA base
#define KESTREL_ISA_FLOATS 4
#define KESTREL_ISA_NAME "base"
#include "engine/cpu/kernels.inc"
