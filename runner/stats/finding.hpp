// What a guard has to say.
#pragma once

#include <string>

namespace kestrel {

struct Finding {
    std::string code;         // upper case, e.g. "THROTTLED"
    std::string sentence;     // what was seen
    std::string advice = {};  // what a person should do; "" if the sentence says it
};

[[nodiscard]] inline std::string text_of(const Finding& finding) {
    return finding.advice.empty() ? finding.sentence : finding.sentence + "; " + finding.advice;
}

}  // namespace kestrel
