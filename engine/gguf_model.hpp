// The shape of a model from a GGUF header.
#pragma once

#include "engine/gguf.hpp"
#include "engine/model_config.hpp"

namespace kestrel {

// Architecture qwen35, validated. Throws EngineError: KESTREL_BAD_MODEL naming file and key, KESTREL_UNSUPPORTED for another architecture
// or a variant this engine does not run.
[[nodiscard]] ModelDims gguf_dims(const GgufHeader& header);

}  // namespace kestrel
