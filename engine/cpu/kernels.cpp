#include "engine/cpu/kernels.hpp"

namespace kestrel::cpu {

const Kernels& kernels() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return avx512::table();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) return avx2::table();
#endif
    return base::table();
}

}  // namespace kestrel::cpu
