// The engine against logits and greedy tokens of an independent implementation.
#include <algorithm>
#include <cmath>

#include "tests/engine/engine_under_test.hpp"

using namespace kestrel::test;

namespace {

std::int32_t index_of_largest(const float* values, std::size_t count) {
    return static_cast<std::int32_t>(std::max_element(values, values + count) - values);
}

struct Fixture {
    const char* name;
    double tolerance;  // of the largest |logit|; rounding grows with depth
};

// Both variants on one model and the answers to it.
void decodes_as_expected(const std::string& model, const std::filesystem::path& expected_file, double tolerance) {
    const auto variant = GENERATE(std::string("reg"), std::string("ref"));
    CAPTURE(model, variant);
    const auto tokens = read_tensor<std::int32_t>(expected_file, "tokens");
    const auto expected = read_tensor<float>(expected_file, "logits");
    const auto greedy = read_tensor<std::int32_t>(expected_file, "greedy");

    Args args(model, variant);
    args.threads(2);
    Engine engine(args);
    const std::size_t vocab = engine.info().vocab;
    REQUIRE(expected.size() == tokens.size() * vocab);

    double largest_difference = 0.0;
    double largest_logit = 0.0;
    int agreeing = 0;
    std::int32_t next = -1;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        next = engine.decode(tokens[t]);
        const auto logits = engine.logits();
        for (std::size_t i = 0; i < vocab; ++i) {
            largest_difference = std::max(largest_difference, std::abs(double{logits[i]} - expected[t * vocab + i]));
            largest_logit = std::max(largest_logit, std::abs(double{expected[t * vocab + i]}));
        }
        CHECK(next == index_of_largest(logits.data(), vocab));
        agreeing += next == index_of_largest(expected.data() + t * vocab, vocab) ? 1 : 0;
    }
    INFO("largest difference / largest logit = " << largest_difference / largest_logit);
    CHECK(largest_difference <= tolerance * largest_logit);
    CHECK(agreeing == static_cast<int>(tokens.size()));

    std::vector<std::int32_t> free_running{next};
    while (free_running.size() < greedy.size()) free_running.push_back(engine.decode(free_running.back()));
    CHECK(free_running == greedy);
}

}  // namespace

TEST_CASE("checkpoints decode to the expected logits and tokens", "[engine][fixtures]") {
    const auto fixture = GENERATE(Fixture{"f32-4l", 1e-4}, Fixture{"bf16-4l-k128", 1e-4}, Fixture{"bf16-64l", 5e-4});
    decodes_as_expected(checkpoint(fixture.name).string(), checkpoint(fixture.name) / "expected.safetensors", fixture.tolerance);
}

// The answers are float64 on the weights as the file stores them, so only this engine's f32 arithmetic differs. A sum of n <= 384 rounded
// products is off by about sqrt(n) 2^-24 = 1.2e-6 of its size; four layers add some ten such errors in sequence with random signs,
// sqrt(10) 1.2e-6 = 3.7e-6. 1e-5 leaves a factor of 2.7; the smallest planted mistake costs 2e-2.
TEST_CASE("GGUF files decode to the expected logits and tokens", "[engine][fixtures][gguf]") {
    const std::string name = GENERATE(as<std::string>{}, "f32-4l.f32", "f32-4l.q4_0-head-q8_0", "bf16-4l-k128.f32", "bf16-4l-k128.q4_0",
                                      "bf16-4l-k128.mixed-q8_0-f16");
    decodes_as_expected(gguf(name + ".gguf").string(), gguf(name + ".expected.safetensors"), 1e-5);
}

TEST_CASE("names with the prefix of a whole model are accepted", "[engine][fixtures]") {
    // The same checkpoint, renamed; each name grows by 15 characters, so the table is written anew.
    const auto source = checkpoint("f32-4l");
    const std::string original = content_of(source / "model.safetensors");
    std::uint64_t header = 0;
    std::memcpy(&header, original.data(), sizeof header);
    const auto table = nlohmann::json::parse(original.substr(sizeof header, header));
    nlohmann::json renamed;
    for (const auto& [name, entry] : table.items()) {
        renamed[name.starts_with("model.") ? "model.language_model." + name.substr(6) : name] = entry;
    }
    const std::string text = renamed.dump();
    const std::uint64_t bytes = text.size();
    TemporaryFolder folder;
    folder.write("model.safetensors",
                 std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + text + original.substr(sizeof header + header));
    nlohmann::json whole;
    whole["model_type"] = "qwen3_5";
    whole["tie_word_embeddings"] = false;
    whole["text_config"] = nlohmann::json::parse(content_of(source / "config.json"));
    whole["text_config"].erase("layer_types");  // the default interval says the same
    folder.write("config.json", whole.dump());

    const Args plain_args(source.string());
    const Args renamed_args(folder.path().string());
    Engine plain(plain_args);
    Engine other(renamed_args);
    plain.decode(7);
    other.decode(7);
    CHECK(same_bits(plain.logits(), other.logits()));
}
