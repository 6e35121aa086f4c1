// Outputs of another implementation to check an engine against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kestrel::session {

struct ExpectedOutputs {
    std::vector<std::int32_t> tokens;  // [n], fed one at a time
    std::vector<float> logits;         // [n][vocab], after each token
    std::size_t vocab = 0;
    std::vector<std::int32_t> greedy;  // the choice after the last token, then what free-running decode chooses
};

// Reads `tokens` i32[n], `logits` f32[n][vocab] and `greedy` i32[m] from a safetensors file. Throws Error(usage) naming the file,
// the tensor, what was expected and what was found.
[[nodiscard]] ExpectedOutputs read_expected_outputs(const std::string& path);

}  // namespace kestrel::session
