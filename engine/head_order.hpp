// Which key head a value head of a gated-delta-net layer reads.
#pragma once

#include <cstdint>

namespace kestrel {

// Files store the value heads in either order, and permuting quantised columns would tear their blocks; so the order is kept.
//   grouped  value head h reads key head h / (value heads / key heads)   Hugging Face
//   tiled    value head h reads key head h % key heads                   GGUF
enum class HeadOrder : std::uint8_t { grouped, tiled };

}  // namespace kestrel
