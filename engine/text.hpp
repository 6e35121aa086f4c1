// Pieces of error messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kestrel {

// "[5120,64]"
[[nodiscard]] std::string text_of(std::span<const std::uint64_t> shape);

// A name from a file in quotes: at most 100 bytes of it, what is not printable ASCII as '?', because a hostile file chooses it.
[[nodiscard]] std::string in_quotes(std::string_view name);

}  // namespace kestrel
