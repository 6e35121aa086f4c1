#include "engine/text.hpp"

namespace kestrel {

std::string text_of(std::span<const std::uint64_t> shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (i > 0) text += ',';
        text += std::to_string(shape[i]);
    }
    text += ']';
    return text;
}

std::string in_quotes(std::string_view name) {
    constexpr std::size_t most = 100;
    std::string text = "\"";
    for (const char c : name.substr(0, most)) text += c >= ' ' && c <= '~' ? c : '?';
    text += name.size() > most ? "...\"" : "\"";
    return text;
}

}  // namespace kestrel
