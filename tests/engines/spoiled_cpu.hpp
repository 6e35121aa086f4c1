// The CPU engine with one operator replaced by a wrong one.
#pragma once

#include "engine/cpu/backend.hpp"

namespace kestrel::test {

// The library under `name`, with its table of operators after `spoil`; of the first call, since there is one library in a program.
inline const BackendLibrary& spoiled_cpu(const char* name, void (*spoil)(BackendOperators& operators)) {
    static const BackendOperators operators = [spoil] {
        BackendOperators all = *cpu::library().operators;
        spoil(all);
        return all;
    }();
    static const BackendLibrary library = [name] {
        BackendLibrary one = cpu::library();
        one.name = name;
        one.operators = &operators;
        return one;
    }();
    return library;
}

}  // namespace kestrel::test
