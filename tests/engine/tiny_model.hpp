// The small model of tiny_files.hpp in the engine under test.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/engine_under_test.hpp"
#include "tests/engine/tiny_files.hpp"

namespace kestrel::test {

struct Refusal {
    kestrel_status status;
    std::string text;
    [[nodiscard]] bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};

inline Refusal refusal_of(const std::filesystem::path& model) {
    const Args args(model.string());
    kestrel_engine* out = nullptr;
    const kestrel_status status = engine_api().open(&args.args, &out);
    if (out != nullptr) engine_api().close(out);
    return {status, engine_api().last_error()};
}

// Logits of eight given tokens, one after the other.
inline std::vector<float> logits_of(const Args& args) {
    Engine engine(args);
    std::vector<float> all;
    const std::int32_t vocab = static_cast<std::int32_t>(engine.info().vocab);
    for (std::int32_t t = 0; t < 8; ++t) {
        engine.decode((5 * t + 3) % vocab);
        const auto logits = engine.logits();
        all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
}

}  // namespace kestrel::test
