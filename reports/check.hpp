// The result of a numeric check.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kestrel {

// From a worker's message "checked" (runner/session/worker_check*.cpp): the layers of evidence, and passed, FAILED or NOT CHECKED.
[[nodiscard]] std::string check_text(const nlohmann::json& checked);

}  // namespace kestrel
