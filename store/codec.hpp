// The compact form of a window's token times in the database.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kestrel {

// Token times in ns, in order, each as unsigned LEB128: seven bits a byte, least significant first, the top bit set on all
// bytes but a number's last. Ten milliseconds take four bytes. Throws Error(storage) for a negative time.
[[nodiscard]] std::string encode_token_ns(const std::vector<std::int64_t>& token_ns);

// The inverse; throws Error(storage) if the bytes are not such a list.
[[nodiscard]] std::vector<std::int64_t> decode_token_ns(std::string_view blob);

}  // namespace kestrel
