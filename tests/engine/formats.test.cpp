// Matrices in every stored type: the same values give the same digest and, but for the order of sums, the same logits.
#include <cmath>
#include <set>

#include "tests/engine/tiny_model.hpp"

using namespace kestrel::test;

namespace {

// Rows are whole blocks of 256 everywhere; the key and value dimensions differ, two value heads share a key head.
std::string description_with(const std::string& weights, bool tied) {
    return std::string(R"(name = "formats"
seed = 7
[dims]
vocab = 512
hidden = 256
intermediate = 256
layers = 4
full_attention_interval = 2
heads = 4
kv_heads = 2
head_dim = 64
rotary_dim = 16
rope_theta = 1.0e6
rms_norm_eps = 1.0e-5
gdn_key_heads = 2
gdn_value_heads = 4
gdn_key_dim = 32
gdn_value_dim = 64
conv_taps = 3
tied_head = )") +
           (tied ? "true\n" : "false\n") + weights;
}

kestrel_memory_needs needs_of(const Args& args) {
    kestrel_memory_needs needs{};
    needs.struct_size = sizeof needs;
    REQUIRE(capability<kestrel_borrow>(engine_api(), KESTREL_CAP_BORROW).needs(&args.args, &needs) == KESTREL_OK);
    return needs;
}

std::string digest_of(const std::string& model, const char* weights = "stored") {
    Args args(model);
    args.list.push_back({"KESTREL_WEIGHTS", weights});
    args.args.switches = args.list.data();
    args.args.switch_count = args.list.size();
    const auto needs = needs_of(args);
    const std::size_t bytes = (needs.weights_bytes + 63) / 64 * 64;
    const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(64, bytes), std::free);
    args.args.weights = memory.get();
    args.args.weights_bytes = bytes;
    const auto& borrow = capability<kestrel_borrow>(engine_api(), KESTREL_CAP_BORROW);
    REQUIRE(borrow.load(&args.args) == KESTREL_OK);
    char digest[65];
    REQUIRE(borrow.digest(&args.args, digest) == KESTREL_OK);
    return digest;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0.0;
    double largest = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        difference = std::max(difference, std::abs(double{a[i]} - double{b[i]}));
        largest = std::max(largest, std::abs(double{a[i]}));
    }
    return difference / largest;
}

}  // namespace

TEST_CASE("a description has the same weights in every stored type", "[engine][formats]") {
    const TemporaryFolder folder;
    const std::string model = (folder.path() / "m.toml").string();
    for (const bool tied : {false, true}) {
        folder.write("m.toml", description_with("", tied));
        const std::string digest = digest_of(model);
        const std::vector<float> expected = logits_of(Args(model));
        std::set<std::string> layouts;
        for (const std::string type : {"f32", "f16", "bf16", "q4_0", "q4_1", "q8_0", "q6_k"}) {
            CAPTURE(type, tied);
            folder.write("m.toml", description_with("[weights]\nmatrices = \"" + type + "\"\n", tied));
            CHECK(digest_of(model) == digest);
            // Four layers of sums of 256 products in another order: sqrt(256) 2^-24 per sum, some ten in sequence, less than 1e-5.
            CHECK(largest_difference(expected, logits_of(Args(model))) < 1e-5);
            layouts.insert(needs_of(Args(model)).layout_id);
            folder.write("m.toml", description_with("[weights]\nhead = \"" + type + "\"\n", tied));
            CHECK(digest_of(model) == digest);
        }
        CHECK(layouts.size() == 7);
    }
}

// 416 columns are three lines of 128 and a block; the digest's pieces begin in the middle of rows.
TEST_CASE("rows may end in the middle of a line", "[engine][formats]") {
    const TemporaryFolder folder;
    const std::string model = (folder.path() / "m.toml").string();
    const auto describe = [&](const std::string& weights) {
        std::string text = description_with(weights, true);
        text.replace(text.find("hidden = 256"), 12, "hidden = 416");
        text.replace(text.find("intermediate = 256"), 18, "intermediate = 32");
        folder.write("m.toml", text);
    };
    describe("");
    const std::string digest = digest_of(model);
    const std::vector<float> expected = logits_of(Args(model));
    for (const std::string type : {"q4_0", "q4_1", "q8_0"}) {
        CAPTURE(type);
        describe("[weights]\nmatrices = \"" + type + "\"\n");
        CHECK(digest_of(model) == digest);
        Args two(model);
        CHECK(same_bits(logits_of(two.threads(2)), logits_of(Args(model))));
        // The numbers are the same and so is the order of sums: only what is held differs.
        CHECK(same_bits(logits_of(Args(model)), expected));
    }
}

TEST_CASE("key and value dimensions may differ", "[engine][formats]") {
    const TemporaryFolder folder;
    const std::string model = (folder.path() / "m.toml").string();
    folder.write("m.toml", description_with("", false));
    const auto logits = logits_of(Args(model));
    for (const float logit : logits) REQUIRE(std::isfinite(logit));
    CHECK(same_bits(logits_of(Args(model, "ref")), logits));
    Args two(model);
    CHECK(same_bits(logits_of(two.threads(2)), logits));
}

TEST_CASE("types in a description: wrong ones are refused", "[engine][formats][hostile]") {
    const TemporaryFolder folder;
    const auto refusal = [&](const std::string& weights, const std::string& hidden = "hidden = 256") {
        std::string text = description_with(weights, false);
        text.replace(text.find("hidden = 256"), 12, hidden);
        folder.write("m.toml", text);
        return refusal_of(folder.path() / "m.toml");
    };
    CHECK(refusal("[weights]\nmatrices = \"q5_0\"\n").says("weights.matrices"));
    CHECK(refusal("[weights]\nmatrix = \"q4_0\"\n").says("weights.matrix"));
    CHECK(refusal("[weights]\nhead = 4\n").says("weights.head"));
    const Refusal uneven = refusal("[weights]\nmatrices = \"q4_0\"\n", "hidden = 250");
    CHECK(uneven.status == KESTREL_BAD_MODEL);
    CHECK(uneven.says("embed_tokens"));
    CHECK(uneven.says("blocks of 32"));
}

TEST_CASE("KESTREL_WEIGHTS=q4_0 quantises what is not", "[engine][formats][switches]") {
    // Another implementation quantised the same checkpoint: every matrix must come out the same.
    const std::string plain = gguf("bf16-4l-k128.f32.gguf").string();
    const std::string quantised = gguf("bf16-4l-k128.q4_0.gguf").string();
    CHECK(digest_of(plain, "q4_0") == digest_of(quantised));
    CHECK(digest_of(plain) != digest_of(quantised));
    CHECK(digest_of(quantised, "q4_0") == digest_of(quantised));
    // The same numbers from the other format, but for the order of heads, and bf16 instead of f32.
    CHECK(digest_of(checkpoint("bf16-4l-k128").string()) != digest_of(checkpoint("bf16-4l-k128").string(), "q4_0"));

    Args args(plain);
    args.list.push_back({"KESTREL_WEIGHTS", "q4_0"});
    args.args.switches = args.list.data();
    args.args.switch_count = args.list.size();
    CHECK(needs_of(args).weights_bytes < needs_of(Args(plain)).weights_bytes / 4);
    CHECK(std::string(needs_of(args).layout_id) == needs_of(Args(quantised)).layout_id);
    CHECK(std::string(needs_of(args).layout_id) != needs_of(Args(plain)).layout_id);
    const char* value = nullptr;
    Engine engine(args);
    engine.check(capability<kestrel_switches>(engine_api(), KESTREL_CAP_SWITCHES).effective(engine.handle(), 1, &value));
    CHECK(std::string(value) == "q4_0");
    CHECK(same_bits(logits_of(args), logits_of(Args(quantised))));
}

TEST_CASE("a matrix beyond q4_0's range is refused", "[engine][formats][hostile]") {
    const TemporaryFolder folder;
    TinyHf model;
    model.at("lm_head.weight").data.replace(160, 4, raw(1e6F));
    model.write(folder);
    CHECK(refusal_of(folder.path()).status == KESTREL_OK);
    Args args(folder.path().string());
    args.list.push_back({"KESTREL_WEIGHTS", "q4_0"});
    args.args.switches = args.list.data();
    args.args.switch_count = args.list.size();
    kestrel_engine* out = nullptr;
    CHECK(engine_api().open(&args.args, &out) == KESTREL_BAD_MODEL);
    const std::string text = engine_api().last_error();
    CHECK(text.find("lm_head.weight") != std::string::npos);
    CHECK(text.find("element 32 ") != std::string::npos);
    CHECK(text.find("too large for q4_0") != std::string::npos);
}

TEST_CASE("the small quantised shape is known", "[engine][formats]") {
    // 254e6 embedding elements of 34 bytes in 32 and 0.5e9 others of 18.
    const auto needs = needs_of(Args(description("qwen3.5-0.8b")));
    CHECK(needs.weights_bytes > std::size_t{530'000'000});
    CHECK(needs.weights_bytes < std::size_t{570'000'000});
}
