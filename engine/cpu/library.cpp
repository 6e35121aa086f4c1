// libkestrel_cpu.so decodes with the CPU backend.
#include "engine/cpu/backend.hpp"

const kestrel::BackendLibrary& kestrel::backend_library() {
    return cpu::library();
}
