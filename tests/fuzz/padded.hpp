// Headers followed by data: an input is the start of a file whose remaining bytes are zero, so that tables which point into the data are
// followed as in a whole file, while inputs stay small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "engine/error.hpp"

namespace kestrel::fuzz {

inline constexpr std::size_t largest_input = std::size_t{1} << 20;
inline constexpr std::size_t data_bytes = std::size_t{5} << 20;  // more than any fixture has

// Runs `read` on the bytes alone, which a sanitizer guards, and on the padded file. Refusals are the purpose; any other exception, or a
// sanitizer's finding, ends the process.
template <class Read>
void on_input(const std::uint8_t* input, std::size_t size, const Read& read) {
    if (size > largest_input) return;
    const auto attempt = [&](std::span<const std::byte> bytes) {
        try {
            read(bytes);
        } catch (const EngineError& refusal) {
            // A refusal is worth something only if it says what is wrong, and where.
            if (std::strstr(refusal.what(), "fuzz") == nullptr) __builtin_trap();
        }
    };
    const auto alone = std::make_unique<std::byte[]>(size);
    if (size > 0) std::memcpy(alone.get(), input, size);
    attempt({alone.get(), size});
    static std::vector<std::byte> file(largest_input + data_bytes);
    if (size > 0) std::memcpy(file.data(), input, size);
    attempt({file.data(), size + data_bytes});
    std::memset(file.data(), 0, size);
}

}  // namespace kestrel::fuzz
