// Where weights blocks are kept between workers, from the environment.
#pragma once

#include <cstdint>
#include <string>

#include "runner/session/weight_cache.hpp"

namespace kestrel::cli {

// KESTREL_AB_CACHE, else $XDG_CACHE_HOME/kestrel-ab, else ~/.cache/kestrel-ab, else none; KESTREL_AB_CACHE_LIMIT and
// KESTREL_AB_CACHE_MINIMUM. Throws Error(usage) if one of the last two is not a size.
[[nodiscard]] session::CacheSettings cache_settings();

// "64GiB", "500M", "1048576": binary units whatever their spelling. Throws Error(usage) naming `what`.
[[nodiscard]] std::uint64_t parse_size(const std::string& text, const std::string& what);

}  // namespace kestrel::cli
