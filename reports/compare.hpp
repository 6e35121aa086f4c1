// Why two sessions are not compared.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

struct SessionDifference {
    std::string what;  // "base artifact", "environment: kernel", ...
    std::string first;
    std::string second;
};

// Everything that differs between two sessions and would hide in a comparison of their times; the date always does.
[[nodiscard]] std::vector<SessionDifference> session_differences(const Session& a, const Session& b);

// The refusal: names both sessions and all that differs, and says what to run instead. No time of either is shown.
[[nodiscard]] std::string compare_text(const Session& a, const Session& b);

// {"format": 1, "kind": "compare", "answer": "refused", "first": uuid, "second": uuid,
//  "differences": [{"what", "first", "second"}], "instead": command}
[[nodiscard]] nlohmann::json compare_json(const Session& a, const Session& b);

}  // namespace kestrel
