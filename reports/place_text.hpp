// Arms and places in words.
#pragma once

#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

// "runtime switch VLLM_CUDA_GDN_DELTA: ref -> (unset)", with the objects that changed.
[[nodiscard]] std::string place_text(const Place& place);

// "NAME=value NAME=value", or "none".
[[nodiscard]] std::string switches_text(const std::vector<SwitchSetting>& switches);

}  // namespace kestrel
