// The kernels for processors with avx512f. Standard headers come before the pragma: their inline functions must stay runnable
// anywhere, because the linker may keep this file's copy for all.
#if defined(__x86_64__)

#include <immintrin.h>

#include <cmath>
#include <cstddef>

#include "engine/cpu/kernels.hpp"

#pragma GCC target("avx512f")
#define KESTREL_ISA avx512
#define KESTREL_ISA_FLOATS 16
#define KESTREL_ISA_NAME "avx512f"
#include "engine/cpu/kernels.inc"

#endif
