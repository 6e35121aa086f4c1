// Hugging Face directories written byte by byte: damaged ones are refused with a text that names file and tensor, parts and spellings are
// understood.
#include <limits>

#include "tests/engine/tiny_model.hpp"

using namespace kestrel::test;

namespace {

struct Case {
    const char* what;
    std::function<void(TinyHf&)> change;
    kestrel_status status;
    std::vector<std::string> says;
};

const std::string matrix = "model.layers.1.linear_attn.out_proj.weight";
const std::string rates = "model.layers.1.linear_attn.A_log";

const std::vector<Case>& cases() {
    static const std::vector<Case> all{
        {"missing",
         [](TinyHf& m) { std::erase_if(m.entries, [](const auto& e) { return e.name == matrix; }); },
         KESTREL_BAD_MODEL,
         {matrix, "missing", "[32,32]"}},
        {"shape",
         [](TinyHf& m) {
             m.at(matrix).shape = {16, 64};
         },
         KESTREL_BAD_MODEL,
         {matrix, "expected shape [32,32], found [16,64]"}},
        {"rank",
         [](TinyHf& m) {
             m.at(matrix).shape = {1, 32, 32};
         },
         KESTREL_BAD_MODEL,
         {matrix, "found [1,32,32]"}},
        {"type", [](TinyHf& m) { m.at(matrix).dtype = "I32"; }, KESTREL_UNSUPPORTED, {matrix, "BF16", "found I32"}},
        {"length", [](TinyHf& m) { m.at(matrix).dtype = "F16"; }, KESTREL_BAD_MODEL, {matrix, "expected 2048 bytes, found 4096"}},
        {"extra",
         [](TinyHf& m) {
             m.entries.push_back({"model.layers.0.self_attn.q_proj.bias", "F32", {2}, std::string(8, '\0')});
         },
         KESTREL_BAD_MODEL,
         {"model.layers.0.self_attn.q_proj.bias", "extra tensor"}},
        {"a layer too many",
         [](TinyHf& m) {
             m.entries.push_back({"model.layers.2.input_layernorm.weight", "F32", {2}, std::string(8, '\0')});
         },
         KESTREL_BAD_MODEL,
         {"model.layers.2.input_layernorm.weight", "extra tensor"}},
        {"shape of a tied model's head",
         [](TinyHf& m) {
             m.config["tie_word_embeddings"] = true;
             m.at("lm_head.weight").shape = {32, 16};
         },
         KESTREL_BAD_MODEL,
         {"lm_head.weight", "expected shape [16,32], found [32,16]"}},
        {"type of a tied model's head",
         [](TinyHf& m) {
             m.config["tie_word_embeddings"] = true;
             m.at("lm_head.weight").dtype = "I32";
         },
         KESTREL_UNSUPPORTED,
         {"lm_head.weight", "BF16", "found I32"}},
        {"both spellings",
         [](TinyHf& m) {
             TinyHf::Entry copy = m.at(matrix);
             copy.name = "model.language_model." + matrix.substr(6);
             m.entries.push_back(copy);
         },
         KESTREL_BAD_MODEL,
         {matrix, "model.language_model.layers.1", "duplicate"}},
        {"NaN",
         [](TinyHf& m) { m.at(matrix).data.replace(40, 4, raw(std::numeric_limits<float>::quiet_NaN())); },
         KESTREL_BAD_MODEL,
         {matrix, "element 10 ", "NaN"}},
        {"infinite norm",
         [](TinyHf& m) { m.at("model.norm.weight").data.replace(124, 4, raw(std::numeric_limits<float>::infinity())); },
         KESTREL_BAD_MODEL,
         {"model.norm.weight", "element 31 "}},
        {"infinite rate", [](TinyHf& m) { m.at(rates).data.replace(4, 4, raw(100.0F)); }, KESTREL_BAD_MODEL, {rates, "element 1 "}},
    };
    return all;
}

TinyHf in_bf16() {
    TinyHf model;
    for (TinyHf::Entry& entry : model.entries) {
        std::string halves;
        for (std::size_t i = 0; i < entry.data.size(); i += 4) halves += entry.data.substr(i + 2, 2);
        entry.dtype = "BF16";
        entry.data = halves;
    }
    return model;
}

std::vector<float> logits_in(const TemporaryFolder& folder) {
    return logits_of(Args(folder.path().string()));
}

void write_parts(const TinyHf& model, const TemporaryFolder& folder, const std::function<void(nlohmann::json&)>& change) {
    const std::size_t half = model.entries.size() / 2;
    nlohmann::json index;
    for (std::size_t i = 0; i < model.entries.size(); ++i) {
        index["weight_map"][model.entries[i].name] = i < half ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
    }
    change(index);
    folder.write("config.json", model.config.dump());
    folder.write("model-00001-of-00002.safetensors", model.safetensors(0, half));
    folder.write("model-00002-of-00002.safetensors", model.safetensors(half, model.entries.size()));
    folder.write("model.safetensors.index.json", index.dump());
}

}  // namespace

TEST_CASE("Hugging Face: tensors that lie", "[engine][hostile][hf]") {
    const TemporaryFolder folder;
    for (const Case& one : cases()) {
        TinyHf model;
        one.change(model);
        model.write(folder);
        const Refusal refusal = refusal_of(folder.path());
        CAPTURE(one.what, refusal.text);
        CHECK(refusal.status == one.status);
        CHECK(refusal.says("model.safetensors"));
        for (const std::string& part : one.says) CHECK(refusal.says(part));
    }
}

TEST_CASE("Hugging Face: truncated at every byte of the header", "[engine][hostile][hf]") {
    const TemporaryFolder folder;
    const TinyHf model;
    model.write(folder);
    const std::string whole = model.safetensors(0, model.entries.size());
    std::uint64_t header = 0;
    std::memcpy(&header, whole.data(), sizeof header);
    for (std::size_t length = 0; length <= header + 9; ++length) {
        folder.write("model.safetensors", whole.substr(0, length));
        const Refusal refusal = refusal_of(folder.path());
        CAPTURE(length, refusal.text);
        REQUIRE(refusal.status == KESTREL_BAD_MODEL);
        REQUIRE(refusal.says("model.safetensors"));
    }
}

TEST_CASE("Hugging Face: tables that JSON readers take for good", "[engine][hostile][hf]") {
    const TemporaryFolder folder;
    const TinyHf model;
    model.write(folder);
    const auto with = [&](const std::function<void(std::string&)>& change) {
        folder.write("model.safetensors", model.safetensors(0, model.entries.size(), change));
        return refusal_of(folder.path());
    };
    const Refusal twice = with([](std::string& text) {
        const std::string entry = text.substr(1, text.find("]},") + 2);
        text.insert(1, entry);
    });
    CHECK(twice.status == KESTREL_BAD_MODEL);
    CHECK(twice.says("\"model.embed_tokens.weight\" is given twice"));
    const Refusal deep = with([](std::string& text) { text = "{\"a\":" + std::string(200000, '['); });
    CHECK(deep.status == KESTREL_BAD_MODEL);
    CHECK(deep.says("nested deeper"));
    CHECK(with([](std::string& text) { text.replace(text.find(":[16,32]"), 8, ":[1e1,3]"); }).says("whole numbers"));
    CHECK(with([](std::string& text) { text += "   "; }).status == KESTREL_OK);
    CHECK(with([](std::string& text) { text.insert(1, "\"__metadata__\":{\"format\":\"pt\"},"); }).status == KESTREL_OK);
    folder.write("model.safetensors", model.safetensors(0, model.entries.size()));
    folder.write("config.json", "{\"vocab_size\": 16, " + model.config.dump().substr(1));
    CHECK(refusal_of(folder.path()).says("\"vocab_size\" is given twice"));
}

TEST_CASE("Hugging Face: parts of other uses are ignored, spellings and types mean the same", "[engine][hf]") {
    const TemporaryFolder folder;
    TinyHf model;
    model.write(folder);
    const std::vector<float> expected = logits_in(folder);
    for (const char* name : {"model.visual.blocks.0.attn.qkv.weight", "mtp.layers.0.input_layernorm.weight", "mtp.fc.weight"}) {
        model.entries.push_back({name, "I64", {1}, std::string(8, '\xFF')});
    }
    model.at(matrix).name = "model.language_model." + matrix.substr(6);
    model.write(folder);
    CHECK(same_bits(logits_in(folder), expected));
    // Multiples of 1/64 from -1/2 to 1/2 are exact in bf16.
    in_bf16().write(folder);
    CHECK(same_bits(logits_in(folder), expected));
}

TEST_CASE("Hugging Face: a tied model's own head is not read", "[engine][hf]") {
    const TemporaryFolder folder;
    TinyHf model;
    model.write(folder);
    const std::vector<float> untied = logits_in(folder);
    model.config["tie_word_embeddings"] = true;
    model.write(folder);
    const std::vector<float> with_head = logits_in(folder);
    // Its values are nobody's, not even if they are no numbers.
    model.at("lm_head.weight").data.replace(0, 4, raw(std::numeric_limits<float>::quiet_NaN()));
    model.write(folder);
    CHECK(same_bits(logits_in(folder), with_head));
    std::erase_if(model.entries, [](const auto& entry) { return entry.name == "lm_head.weight"; });
    model.write(folder);
    CHECK(same_bits(logits_in(folder), with_head));
    CHECK_FALSE(same_bits(untied, with_head));
}

TEST_CASE("Hugging Face: a checkpoint in parts", "[engine][hostile][hf]") {
    const TinyHf model;
    const TemporaryFolder whole;
    model.write(whole);
    const TemporaryFolder folder;
    write_parts(model, folder, [](nlohmann::json&) {});
    CHECK(same_bits(logits_in(folder), logits_in(whole)));

    const auto refused = [&](const std::function<void(nlohmann::json&)>& change) {
        write_parts(model, folder, change);
        const Refusal refusal = refusal_of(folder.path());
        CHECK(refusal.status == KESTREL_BAD_MODEL);
        return refusal;
    };
    const Refusal elsewhere =
        refused([](nlohmann::json& index) { index["weight_map"]["lm_head.weight"] = "model-00002-of-00002.safetensors"; });
    CHECK(elsewhere.says("index.json"));
    CHECK(elsewhere.says("lm_head.weight"));
    CHECK(elsewhere.says("model-00001-of-00002.safetensors"));
    CHECK(refused([](nlohmann::json& index) { index["weight_map"]["x"] = "model-00001-of-00002.safetensors"; }).says("\"x\""));
    CHECK(refused([](nlohmann::json& index) { index["weight_map"]["x"] = "absent.safetensors"; }).says("absent.safetensors"));
    CHECK(refused([](nlohmann::json& index) { index["weight_map"]["x"] = "../model.safetensors"; }).says("not a file name"));
    CHECK(refused([](nlohmann::json& index) { index["weight_map"]["x"] = 5; }).says("not a file name"));
    CHECK(refused([](nlohmann::json& index) { index["weight_map"] = nlohmann::json::object(); }).says("weight_map"));
    CHECK(refused([](nlohmann::json& index) { index.erase("weight_map"); }).says("weight_map"));
    // One tensor in both files.
    write_parts(model, folder, [](nlohmann::json&) {});
    folder.write("model-00002-of-00002.safetensors", model.safetensors(model.entries.size() / 2 - 1, model.entries.size()));
    const Refusal duplicate = refusal_of(folder.path());
    CHECK(duplicate.status == KESTREL_BAD_MODEL);
    CHECK(duplicate.says("duplicate"));
    CHECK(duplicate.says(model.entries[model.entries.size() / 2 - 1].name));
}
