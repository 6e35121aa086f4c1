// The kernels for processors with avx2, fma and f16c. Standard headers come before the pragma: their inline functions must stay runnable
// anywhere, because the linker may keep this file's copy for all.
#if defined(__x86_64__)

#include <immintrin.h>

#include <cmath>
#include <cstddef>

#include "engine/cpu/kernels.hpp"

#pragma GCC target("avx2,fma,f16c")
#define KESTREL_ISA avx2
#define KESTREL_ISA_FLOATS 8
#define KESTREL_ISA_NAME "avx2"
#include "engine/cpu/kernels.inc"

#endif
