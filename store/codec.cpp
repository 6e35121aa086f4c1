#include "store/codec.hpp"

#include "runner/record/error.hpp"

namespace kestrel {

std::string encode_token_ns(const std::vector<std::int64_t>& token_ns) {
    std::string blob;
    blob.reserve(token_ns.size() * 4);
    for (const std::int64_t value : token_ns) {
        if (value < 0)
            throw Error(ExitCode::storage, "a token's time is negative (" + std::to_string(value) + " ns); the window is not stored");
        auto rest = static_cast<std::uint64_t>(value);
        while (rest >= 0x80) {
            blob += static_cast<char>((rest & 0x7f) | 0x80);
            rest >>= 7;
        }
        blob += static_cast<char>(rest);
    }
    return blob;
}

std::vector<std::int64_t> decode_token_ns(std::string_view blob) {
    const auto damaged = [] {
        return Error(ExitCode::storage, "a window's token times are damaged; check with 'kestrel-ab store verify'");
    };
    std::vector<std::int64_t> token_ns;
    std::uint64_t value = 0;
    int shift = 0;
    for (const char c : blob) {
        const auto byte = static_cast<unsigned char>(c);
        if (shift > 56) throw damaged();  // nine groups of seven bits are all a non-negative int64 has
        value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
        shift += 7;
        if ((byte & 0x80) != 0) continue;
        token_ns.push_back(static_cast<std::int64_t>(value));
        value = 0;
        shift = 0;
    }
    if (shift != 0) throw damaged();
    return token_ns;
}

}  // namespace kestrel
