// Synthetic models are not vacuous; damaged and hostile model files are refused with a text that names the fault.
#include <cmath>
#include <set>

#include "tests/engine/tiny_model.hpp"

using namespace kestrel::test;

namespace {

// f32-4l with its header or configuration changed.
class Damaged {
  public:
    Damaged() : weights_(content_of(checkpoint("f32-4l") / "model.safetensors")) {
        std::uint64_t bytes = 0;
        std::memcpy(&bytes, weights_.data(), sizeof bytes);
        header = nlohmann::json::parse(weights_.substr(8, bytes));
        data = weights_.substr(8 + bytes);
        config = nlohmann::json::parse(content_of(checkpoint("f32-4l") / "config.json"));
    }
    Refusal open() const {
        const std::string text = header.dump();
        const std::uint64_t bytes = text.size();
        return open_with(std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + text + data);
    }
    Refusal open_with(const std::string& safetensors) const {
        folder_.write("config.json", config.dump());
        folder_.write("model.safetensors", safetensors);
        return refusal_of(folder_.path());
    }
    [[nodiscard]] const std::string& weights() const { return weights_; }
    nlohmann::json header;
    nlohmann::json config;
    std::string data;

  private:
    std::string weights_;
    TemporaryFolder folder_;
};

Refusal config_with(const char* key, const nlohmann::json& value) {
    Damaged damaged;
    damaged.config[key] = value;
    return damaged.open();
}

}  // namespace

TEST_CASE("the small description answers with finite and varied tokens", "[engine][synthetic]") {
    const Args args(description("mini-64l"));
    Engine engine(args);
    std::set<std::int32_t> free_running;
    std::int32_t token = 1;
    for (int t = 0; t < 32; ++t) {
        token = engine.decode(token);
        free_running.insert(token);
    }
    CHECK(free_running.size() >= 16);
    engine.reset();
    std::set<std::int32_t> forced;
    for (int t = 0; t < 32; ++t) {
        forced.insert(engine.decode((t * 53 + 5) % 2048));
        for (const float logit : engine.logits()) REQUIRE(std::isfinite(logit));
    }
    CHECK(forced.size() >= 16);

    // The recurrent state matters: without it the same token gives other logits.
    engine.decode(9);
    const auto with_history = engine.logits();
    engine.reset();
    engine.decode(9);
    CHECK_FALSE(same_bits(engine.logits(), with_history));
    for (const std::uint32_t layer : {0U, 62U}) {
        double largest = 0.0;
        for (const float value : engine.read(KESTREL_READ_GDN_STATE, layer)) largest = std::max(largest, std::abs(double{value}));
        CHECK(largest > 1e-4);
        CHECK(largest < 1e4);
    }
}

TEST_CASE("the full-size description is known, and refused where it does not fit", "[engine][synthetic]") {
    const Args args(description("qwen3.5-27b"));
    kestrel_memory_needs needs{};
    needs.struct_size = sizeof needs;
    REQUIRE(capability<kestrel_borrow>(engine_api(), KESTREL_CAP_BORROW).needs(&args.args, &needs) == KESTREL_OK);
    // 25.6e9 elements of 18 bytes in 32, embedding included, a head of 1.27e9 elements of 210 bytes in 256, and 0.1 GB of f32.
    CHECK(needs.weights_bytes > std::size_t{15'400'000'000});
    CHECK(needs.weights_bytes < std::size_t{15'700'000'000});
    std::ifstream meminfo("/proc/meminfo");
    std::string key;
    std::uint64_t kibibytes = 0;
    while (meminfo >> key >> kibibytes && key != "MemTotal:") meminfo.ignore(1000, '\n');
    if (kibibytes * 1024 < needs.weights_bytes) {
        const Refusal refusal = refusal_of(description("qwen3.5-27b"));
        CHECK(refusal.status == KESTREL_OUT_OF_MEMORY);
        CHECK(refusal.says(std::to_string(needs.weights_bytes)));
        CHECK(refusal.says("available"));
    }
}

TEST_CASE("missing and unsupported models", "[engine][hostile]") {
    TemporaryFolder folder;
    CHECK(refusal_of(folder.path() / "nothing").status == KESTREL_BAD_MODEL);
    const Refusal no_config = refusal_of(folder.path());
    CHECK(no_config.status == KESTREL_BAD_MODEL);
    CHECK(no_config.says("config.json"));
    folder.write("config.json", content_of(checkpoint("f32-4l") / "config.json"));
    const Refusal no_weights = refusal_of(folder.path());
    CHECK(no_weights.status == KESTREL_BAD_MODEL);
    CHECK(no_weights.says("model.safetensors"));
    folder.write("x.gguf", "GGUF");
    CHECK(refusal_of(folder.path() / "x.gguf").status == KESTREL_BAD_MODEL);
    folder.write("x.bin", "GGUF");
    CHECK(refusal_of(folder.path() / "x.bin").status == KESTREL_UNSUPPORTED);
    folder.write("config.json", "{");
    CHECK(refusal_of(folder.path()).says("not valid JSON"));
    folder.write("config.json", std::string(100000, '['));
    CHECK(refusal_of(folder.path()).status == KESTREL_BAD_MODEL);
}

TEST_CASE("damaged safetensors files", "[engine][hostile]") {
    CHECK(Damaged().open().status == KESTREL_OK);  // the harness itself is sound
    const std::string name = "model.layers.0.linear_attn.in_proj_z.weight";
    const Damaged original;
    for (const std::size_t length : {0, 1, 7, 8, 100, 5000, 1327831}) {
        CAPTURE(length);
        const Refusal refusal = original.open_with(original.weights().substr(0, length));
        CHECK(refusal.status == KESTREL_BAD_MODEL);
        CHECK(refusal.says("model.safetensors"));
    }
    std::string lying = original.weights();
    std::memset(lying.data(), 0xFF, 8);  // a header of 2^64 - 1 bytes
    CHECK(original.open_with(lying).says("announced"));

    Damaged missing;
    missing.header.erase(name);
    CHECK(missing.open().says(name));
    Damaged shape;
    shape.header[name]["shape"] = {64, 192};
    const Refusal wrong_shape = shape.open();
    CHECK(wrong_shape.status == KESTREL_BAD_MODEL);
    CHECK(wrong_shape.says(name));
    CHECK(wrong_shape.says("expected shape [192,64], found [64,192]"));
    Damaged dtype;
    dtype.header[name]["dtype"] = "I32";
    CHECK(dtype.open().says("found I32"));
    Damaged unknown;
    unknown.header[name]["dtype"] = "F7";
    CHECK(unknown.open().says("unknown dtype"));
    Damaged length;
    length.header[name]["data_offsets"] = {0, 4};
    CHECK(length.open().says("expected 49152 bytes, found 4"));
    Damaged beyond;
    beyond.header[name]["data_offsets"] = {std::uint64_t{1} << 40, (std::uint64_t{1} << 40) + 49152};
    CHECK(beyond.open().says("outside"));
    Damaged overlap;
    overlap.header[name]["data_offsets"] = {0, 49152};
    CHECK(overlap.open().says("overlap"));
    Damaged overflow;
    overflow.header[name]["shape"] = {std::uint64_t{1} << 62, 64};
    CHECK(overflow.open().says("absurdly large"));
    Damaged negative;
    negative.header[name]["shape"] = {-192, 64};
    CHECK(negative.open().status == KESTREL_BAD_MODEL);
    Damaged no_table;
    no_table.header = nlohmann::json::array({1, 2});
    CHECK(no_table.open().says("expected a JSON object"));
}

TEST_CASE("hostile configurations", "[engine][hostile]") {
    for (const char* key :
         {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
          "linear_conv_kernel_dim", "linear_key_head_dim", "linear_value_head_dim", "linear_num_key_heads", "linear_num_value_heads"}) {
        CAPTURE(key);
        for (const nlohmann::json& value :
             std::vector<nlohmann::json>{0, -1, 1.5, "64", nullptr, std::uint64_t{4294967296}, std::uint64_t{0xFFFFFFFFFFFFFFFF}}) {
            const Refusal refusal = config_with(key, value);
            CHECK(refusal.status == KESTREL_BAD_MODEL);
            CHECK(refusal.says(key));
        }
    }
    CHECK(config_with("hidden_size", 1048576).status ==
          KESTREL_BAD_MODEL);  // legal, but the weights have another shape: nothing is allocated
    CHECK(config_with("num_key_value_heads", 3).says("must divide"));
    CHECK(config_with("linear_num_key_heads", 4).says("must divide"));
    CHECK(config_with("layer_types", {"full_attention"}).says("layer_types"));
    CHECK(config_with("model_type", "llama").status == KESTREL_UNSUPPORTED);
    CHECK(config_with("hidden_act", "gelu").status == KESTREL_UNSUPPORTED);
    CHECK(config_with("rms_norm_eps", 0).says("rms_norm_eps"));
    CHECK(config_with("rope_parameters", 5).says("rope_parameters"));
    CHECK(config_with("rope_parameters", {{"rope_theta", 1e7}, {"partial_rotary_factor", 2.0}}).says("partial_rotary_factor"));
    CHECK(config_with("rope_parameters", {{"rope_type", "yarn"}, {"rope_theta", 1e7}}).status == KESTREL_UNSUPPORTED);
}

TEST_CASE("the older rope keys mean the same", "[engine]") {
    Damaged renamed;
    renamed.config.erase("rope_parameters");
    CHECK(renamed.open().says("rope_theta"));
    renamed.config["rope_theta"] = 1e7;
    renamed.config["partial_rotary_factor"] = 0.25;
    CHECK(renamed.open().status == KESTREL_OK);
}

TEST_CASE("hostile descriptions", "[engine][hostile]") {
    const std::string good = content_of(description("mini-64l"));
    TemporaryFolder folder;
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const std::size_t at = text.find(from);
        REQUIRE(at != std::string::npos);
        folder.write("m.toml", text.replace(at, from.size(), to));
        return refusal_of(folder.path() / "m.toml");
    };
    CHECK(with("seed = 1", "seed = 1").status == KESTREL_OK);
    CHECK(with("seed = 1", "seed = -1").says("seed"));
    CHECK(with("seed = 1", "").says("seed"));
    CHECK(with("seed = 1", "seed = 1\nsede = 2").says("sede"));
    CHECK(with("layers = 64", "layers = 5000000").says("layers"));
    CHECK(with("layers = 64", "layers = 0").status == KESTREL_BAD_MODEL);
    CHECK(with("vocab = 2048", "vocab = 9223372036854775807").says("vocab"));
    CHECK(with("hidden = 32", "hidden = \"32\"").says("dims.hidden"));
    CHECK(with("[dims]", "[dim]").says("dims"));
    CHECK(with("heads = 4", "heads = = 4").says("line"));
    CHECK(with("vocab = 2048", "vocab = 1048576").status != KESTREL_INTERNAL);
    std::string absurd = good;
    for (const char* key : {"vocab = 2048", "hidden = 32", "intermediate = 64"}) {
        const std::string text = key;
        absurd.replace(absurd.find(text), text.size(), text.substr(0, text.find('=')) + "= 1048576");
    }
    folder.write("m.toml", absurd);
    CHECK(refusal_of(folder.path() / "m.toml").status == KESTREL_OUT_OF_MEMORY);
}
