// Damaged, lying and unusual GGUF files: refused with a text that names the file and the fault, or read as they are meant.
#include <limits>

#include "tests/engine/tiny_model.hpp"

using namespace kestrel::test;

namespace {

struct Case {
    const char* what;
    std::function<void(TinyGguf&)> change;
    kestrel_status status;
    std::vector<std::string> says;
};

const std::string matrix = "blk.1.ssm_out.weight";
constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

std::string f16_blocks(std::size_t blocks, std::size_t bytes, std::uint16_t scale) {
    std::string data(blocks * bytes, '\x11');
    for (std::size_t i = 0; i < blocks; ++i) std::memcpy(data.data() + i * bytes, &scale, sizeof scale);
    return data;
}

void set_type(TinyGguf& file, std::uint32_t type, std::string data) {
    file.at(matrix).type = type;
    file.at(matrix).data = std::move(data);
}

const std::vector<Case>& header_cases() {
    static const std::vector<Case> cases{
        {"magic", [](TinyGguf& f) { f.magic = "GGML"; }, KESTREL_BAD_MODEL, {"GGUF"}},
        {"version 1", [](TinyGguf& f) { f.version = 1; }, KESTREL_UNSUPPORTED, {"version 1"}},
        {"version 4", [](TinyGguf& f) { f.version = 4; }, KESTREL_UNSUPPORTED, {"version 4"}},
        {"big-endian", [](TinyGguf& f) { f.version = 3U << 24U; }, KESTREL_UNSUPPORTED, {"big-endian"}},
        {"tensor count", [](TinyGguf& f) { f.tensor_count = huge; }, KESTREL_BAD_MODEL, {"number of tensors"}},
        {"key count", [](TinyGguf& f) { f.key_count = std::uint64_t{1} << 60U; }, KESTREL_BAD_MODEL, {"number of keys"}},
        {"key twice", [](TinyGguf& f) { f.keys.push_back(f.keys[1]); }, KESTREL_BAD_MODEL, {"qwen35.vocab_size", "twice"}},
        {"key type", [](TinyGguf& f) { f.set("x", raw(std::uint32_t{13})); }, KESTREL_BAD_MODEL, {"\"x\"", "13"}},
        {"string length",
         [](TinyGguf& f) { f.set("x", raw(std::uint32_t{8}) + raw(huge)); },
         KESTREL_BAD_MODEL,
         {"\"x\"", "18446744073709551615 bytes"}},
        {"name length", [](TinyGguf& f) { f.keys.emplace_back(std::string(70000, 'x'), TinyGguf::u32(1)); }, KESTREL_BAD_MODEL, {"70000"}},
        {"array count", [](TinyGguf& f) { f.set("x", TinyGguf::array(10, huge / 8, "")); }, KESTREL_BAD_MODEL, {"\"x\"", "elements"}},
        {"array type", [](TinyGguf& f) { f.set("x", TinyGguf::array(77, 1, "")); }, KESTREL_BAD_MODEL, {"\"x\"", "77"}},
        {"string in array",
         [](TinyGguf& f) { f.set("x", TinyGguf::array(8, 2, TinyGguf::text("a") + raw(huge))); },
         KESTREL_BAD_MODEL,
         {"\"x\""}},
        {"arrays in arrays",
         [](TinyGguf& f) {
             std::string nested;
             for (int depth = 0; depth < 200; ++depth) nested += raw(std::uint32_t{9}) + raw(std::uint64_t{1});
             f.set("x", raw(std::uint32_t{9}) + nested + raw(std::uint32_t{0}) + raw(std::uint64_t{0}));
         },
         KESTREL_BAD_MODEL,
         {"\"x\"", "deeper"}},
        {"alignment 0", [](TinyGguf& f) { f.set("general.alignment", TinyGguf::u32(0)); }, KESTREL_BAD_MODEL, {"alignment"}},
        {"alignment 48", [](TinyGguf& f) { f.set("general.alignment", TinyGguf::u32(48)); }, KESTREL_BAD_MODEL, {"power of two"}},
        {"unprintable name",
         [](TinyGguf& f) { f.keys.emplace_back("\x1b[2J\n", raw(std::uint32_t{99})); },
         KESTREL_BAD_MODEL,
         {"\"?[2J?\""}},
    };
    return cases;
}

const std::vector<Case>& tensor_cases() {
    static const std::vector<Case> cases{
        {"rank 0", [](TinyGguf& f) { f.at(matrix).ne = {}; }, KESTREL_BAD_MODEL, {matrix, "rank 0"}},
        {"rank 5",
         [](TinyGguf& f) {
             f.at(matrix).ne = {32, 32, 1, 1, 1};
         },
         KESTREL_BAD_MODEL,
         {matrix, "rank 5"}},
        {"shape",
         [](TinyGguf& f) {
             f.at(matrix).ne = {16, 64};
         },
         KESTREL_BAD_MODEL,
         {matrix, "expected shape [32,32], found [64,16]"}},
        {"product",
         [](TinyGguf& f) {
             f.at(matrix).ne = {1U << 31U, 1U << 31U, 8};
         },
         KESTREL_BAD_MODEL,
         {matrix, "absurdly"}},
        {"zero extent",
         [](TinyGguf& f) {
             f.at(matrix).ne = {0, 32};
         },
         KESTREL_BAD_MODEL,
         {matrix, "empty"}},
        {"huge extent",
         [](TinyGguf& f) {
             f.at(matrix).ne = {huge, 1};
         },
         KESTREL_BAD_MODEL,
         {matrix}},
        {"row",
         [](TinyGguf& f) {
             f.at(matrix).ne = {33, 32}, f.at(matrix).type = 2;
         },
         KESTREL_BAD_MODEL,
         {matrix, "33", "Q4_0"}},
        {"unknown type", [](TinyGguf& f) { f.at(matrix).type = 12345; }, KESTREL_BAD_MODEL, {matrix, "12345"}},
        {"type not read", [](TinyGguf& f) { set_type(f, 20, std::string(576, '\0')); }, KESTREL_UNSUPPORTED, {matrix, "IQ4_NL", "Q4_0"}},
        {"offset beyond", [](TinyGguf& f) { f.at(matrix).offset = std::int64_t{1} << 40U; }, KESTREL_BAD_MODEL, {matrix, "data bytes"}},
        {"offset at the top",
         [](TinyGguf& f) { f.at(matrix).offset = std::numeric_limits<std::int64_t>::max() - 31; },
         KESTREL_BAD_MODEL,
         {matrix, "data bytes"}},
        {"offset uneven", [](TinyGguf& f) { f.at(matrix).offset = 4; }, KESTREL_BAD_MODEL, {matrix, "alignment 32"}},
        {"overlap", [](TinyGguf& f) { f.at(matrix).offset = 32; }, KESTREL_BAD_MODEL, {matrix, "overlap"}},
        {"twice", [](TinyGguf& f) { f.entries.push_back(f.at(matrix)); }, KESTREL_BAD_MODEL, {matrix, "twice"}},
        {"missing", [](TinyGguf& f) { f.erase(matrix); }, KESTREL_BAD_MODEL, {matrix, "missing", "[32,32]"}},
        {"no embedding", [](TinyGguf& f) { f.erase("token_embd.weight"); }, KESTREL_BAD_MODEL, {"token_embd.weight", "missing"}},
        {"extra",
         [](TinyGguf& f) {
             f.entries.push_back({"blk.0.attn_q.bias", {64}, 0, std::string(256, '\0'), -1});
         },
         KESTREL_BAD_MODEL,
         {"blk.0.attn_q.bias", "extra tensor"}},
        {"NaN",
         [](TinyGguf& f) { f.at(matrix).data.replace(40, 4, raw(std::numeric_limits<float>::quiet_NaN())); },
         KESTREL_BAD_MODEL,
         {matrix, "element 10 ", "NaN"}},
        {"infinite gate",
         [](TinyGguf& f) { f.at("blk.1.ssm_beta.weight").data.replace(252, 4, raw(-std::numeric_limits<float>::infinity())); },
         KESTREL_BAD_MODEL,
         {"blk.1.ssm_beta.weight", "element 63 "}},
        {"F16 NaN",
         [](TinyGguf& f) { set_type(f, 1, f16_blocks(1024, 2, 0x3C00).replace(2000, 2, raw(std::uint16_t{0xFE00}))); },
         KESTREL_BAD_MODEL,
         {matrix, "element 1000 "}},
        {"BF16 infinity",
         [](TinyGguf& f) { set_type(f, 30, f16_blocks(1024, 2, 0x3F80).replace(2046, 2, raw(std::uint16_t{0x7F80}))); },
         KESTREL_BAD_MODEL,
         {matrix, "element 1023 "}},
        {"Q4_0 scale",
         [](TinyGguf& f) { set_type(f, 2, f16_blocks(32, 18, 0x3C00).replace(54, 2, raw(std::uint16_t{0x7C00}))); },
         KESTREL_BAD_MODEL,
         {matrix, "element 96 "}},
        {"Q4_1 offset",
         [](TinyGguf& f) { set_type(f, 3, f16_blocks(32, 20, 0x3C00).replace(22, 2, raw(std::uint16_t{0x7E00}))); },
         KESTREL_BAD_MODEL,
         {matrix, "element 32 "}},
        {"Q8_0 scale",
         [](TinyGguf& f) { set_type(f, 8, f16_blocks(32, 34, 0x3C00).replace(31 * 34, 2, raw(std::uint16_t{0xFC00}))); },
         KESTREL_BAD_MODEL,
         {matrix, "element 992 "}},
    };
    return cases;
}

Case key_case(const char* key, const std::string& value, std::string says, kestrel_status status = KESTREL_BAD_MODEL) {
    return {key, [=](TinyGguf& f) { f.set(key, value); }, status, {std::move(says)}};
}

std::vector<Case> config_cases() {
    const auto u32 = TinyGguf::u32;
    std::vector<Case> cases{
        key_case("general.architecture", TinyGguf::string("llama"), "llama", KESTREL_UNSUPPORTED),
        key_case("general.architecture", u32(1), "expected a string"),
        key_case("qwen35.rope.scaling.type", TinyGguf::string("yarn"), "yarn", KESTREL_UNSUPPORTED),
        key_case("qwen35.vocab_size", u32(17), "16 rows"),
        key_case("qwen35.block_count", u32(4000000000U), "8192"),
        key_case("qwen35.block_count", u32(3), "recurrent_layers"),
        key_case("qwen35.nextn_predict_layers", u32(2), "nextn_predict_layers"),
        key_case("qwen35.attention.recurrent_layers", TinyGguf::array(7, 2, std::string("\0\2", 2)), "recurrent_layers"),
        key_case("qwen35.attention.recurrent_layers", TinyGguf::array(4, 1, raw(1)), "recurrent_layers"),
        key_case("qwen35.attention.value_length", u32(8), "value_length", KESTREL_UNSUPPORTED),
        key_case("qwen35.attention.head_count_kv", TinyGguf::array(4, 3, std::string(12, '\0')), "3"),
        key_case("qwen35.feed_forward_length", TinyGguf::array(4, 2, raw(32) + raw(64)), "32 and 64"),
        key_case("qwen35.embedding_length", raw(std::uint32_t{5}) + raw(std::int32_t{-32}), "negative"),
        key_case("qwen35.embedding_length", TinyGguf::f32(32.0F), "embedding_length"),
        key_case("qwen35.embedding_length", u32(1U << 20U), "shape"),
        key_case("qwen35.rope.freq_base", TinyGguf::f32(std::numeric_limits<float>::infinity()), "rope_theta"),
        key_case("qwen35.rope.freq_base", u32(5), "floating-point"),
        key_case("qwen35.rope.dimension_count", u32(5), "rotary"),
        key_case("qwen35.attention.layer_norm_rms_epsilon", TinyGguf::f32(0.0F), "eps"),
        key_case("qwen35.ssm.inner_size", u32(33), "multiple"),
        key_case("qwen35.ssm.time_step_rank", u32(0), "inner_size"),
        key_case("qwen35.ssm.group_count", u32(0), "linear key heads"),
        key_case("qwen35.ssm.conv_kernel", u32(1U << 30U), "convolution"),
    };
    Case no_interval = key_case("x", u32(1), "full_attention_interval");
    no_interval.change = [](TinyGguf& f) {
        f.erase_key("qwen35.attention.recurrent_layers");
        f.set("qwen35.full_attention_interval", TinyGguf::u32(0));
    };
    cases.push_back(no_interval);
    for (const char* key :
         {"block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv",
          "attention.key_length", "attention.value_length", "attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.dimension_count",
          "ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank", "ssm.inner_size"}) {
        const std::string full = std::string("qwen35.") + key;
        cases.push_back({key, [=](TinyGguf& f) { f.erase_key(full); }, KESTREL_BAD_MODEL, {full, "missing"}});
    }
    return cases;
}

void check_all(const std::vector<Case>& cases) {
    const TemporaryFolder folder;
    for (const Case& one : cases) {
        TinyGguf file;
        one.change(file);
        folder.write("m.gguf", file.bytes());
        const Refusal refusal = refusal_of(folder.path() / "m.gguf");
        CAPTURE(one.what, refusal.text);
        CHECK(refusal.status == one.status);
        CHECK(refusal.says("m.gguf"));
        for (const std::string& part : one.says) CHECK(refusal.says(part));
    }
}

}  // namespace

TEST_CASE("GGUF: headers that lie", "[engine][hostile][gguf]") {
    check_all(header_cases());
}

TEST_CASE("GGUF: tensors that lie", "[engine][hostile][gguf]") {
    check_all(tensor_cases());
}

TEST_CASE("GGUF: absurd configurations", "[engine][hostile][gguf]") {
    check_all(config_cases());
}

TEST_CASE("GGUF: truncated at every byte of the header, and in the data", "[engine][hostile][gguf]") {
    const TemporaryFolder folder;
    const TinyGguf file;
    const std::string whole = file.bytes();
    const std::size_t header = file.header().size();
    std::vector<std::size_t> lengths{header + 1, header + 40, whole.size() - 33, whole.size() - 4000};
    for (std::size_t length = 0; length <= header; ++length) lengths.push_back(length);
    for (const std::size_t length : lengths) {
        folder.write("m.gguf", whole.substr(0, length));
        const Refusal refusal = refusal_of(folder.path() / "m.gguf");
        CAPTURE(length, refusal.text);
        REQUIRE(refusal.status == KESTREL_BAD_MODEL);
        REQUIRE(refusal.says("m.gguf"));
    }
}

TEST_CASE("GGUF: what is unusual but legal means the same", "[engine][gguf]") {
    const TemporaryFolder folder;
    const auto logits = [&](const std::function<void(TinyGguf&)>& change) {
        TinyGguf file;
        change(file);
        folder.write("m.gguf", file.bytes());
        return logits_of(Args((folder.path() / "m.gguf").string()));
    };
    // The same weights through the other format.
    TinyHf().write(folder);
    const std::vector<float> expected = logits_of(Args(folder.path().string()));
    CHECK(same_bits(logits([](TinyGguf&) {}), expected));
    CHECK(same_bits(logits([](TinyGguf& f) { f.version = 2; }), expected));
    CHECK(same_bits(logits([](TinyGguf& f) { f.alignment = 256, f.set("general.alignment", TinyGguf::u32(256)); }), expected));
    CHECK(same_bits(logits([](TinyGguf& f) { f.erase_key("qwen35.vocab_size"); }), expected));
    CHECK(same_bits(logits([](TinyGguf& f) { f.erase_key("qwen35.full_attention_interval"); }), expected));
    CHECK(same_bits(logits([](TinyGguf& f) { f.erase_key("qwen35.rope.dimension_sections"); }), expected));
    CHECK(
        same_bits(logits([](TinyGguf& f) { f.set("qwen35.rope.dimension_sections", TinyGguf::array(5, 3, raw(11) + raw(11) + raw(10))); }),
                  expected));
    CHECK(
        same_bits(logits([](TinyGguf& f) { f.set("qwen35.attention.head_count_kv", TinyGguf::array(4, 2, raw(1) + raw(0))); }), expected));
    // A block that predicts further tokens, of a type this engine does not read, and a vision tower.
    CHECK(same_bits(logits([](TinyGguf& f) {
                        f.set("qwen35.block_count", TinyGguf::u32(3));
                        f.set("qwen35.nextn_predict_layers", TinyGguf::u32(1));
                        f.set("qwen35.attention.recurrent_layers", TinyGguf::array(7, 3, std::string("\0\1\0", 3)));
                        f.entries.push_back({"blk.2.nextn.eh_proj.weight", {256}, 12, std::string(144, '\0'), -1});
                        f.entries.push_back({"v.patch_embd.weight", {8}, 0, std::string(32, '\xFF'), -1});
                    }),
                    expected));
    // Values of every type, arrays of strings and of arrays are skipped.
    CHECK(same_bits(logits([](TinyGguf& f) {
                        const std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
                        for (std::uint32_t type = 0; type < 13; ++type) {
                            if (sizes[type] != 0) f.set("x" + std::to_string(type), raw(type) + std::string(sizes[type], '\1'));
                        }
                        f.set("x8", TinyGguf::array(8, 2, TinyGguf::text("a") + TinyGguf::text("")));
                        const auto inner = [](const std::string& bytes) {
                            return raw(std::uint32_t{0}) + raw(std::uint64_t{bytes.size()}) + bytes;
                        };
                        f.set("x9", TinyGguf::array(9, 3, inner("ab") + inner("") + inner("c")));
                        std::rotate(f.keys.begin(), f.keys.end() - 3, f.keys.end());
                    }),
                    expected));
    // Gates of another type with the same values: multiples of 1/64 below 1 are exact halves.
    CHECK(same_bits(logits([](TinyGguf& f) {
                        for (const char* name : {"blk.1.ssm_beta.weight", "blk.1.ssm_alpha.weight"}) {
                            TinyGguf::Entry& entry = f.at(name);
                            std::string halves;
                            for (std::size_t i = 0; i < entry.data.size(); i += 4) {
                                std::uint32_t bits = 0;
                                std::memcpy(&bits, entry.data.data() + i, sizeof bits);
                                halves += raw(static_cast<std::uint16_t>(bits >> 16U));
                            }
                            entry.type = 30;
                            entry.data = halves;
                        }
                    }),
                    expected));
    // Without output.weight the embedding is the head.
    const auto tied = logits([](TinyGguf& f) { f.erase("output.weight"); });
    CHECK_FALSE(same_bits(tied, expected));
    TinyHf tied_hf;
    tied_hf.config["tie_word_embeddings"] = true;
    std::erase_if(tied_hf.entries, [](const TinyHf::Entry& entry) { return entry.name == "lm_head.weight"; });
    tied_hf.write(folder);
    CHECK(same_bits(logits_of(Args(folder.path().string())), tied));
    // The interval counts where there is no list: then layer 1 of 2 attends, which these tensors do not fit.
    TinyGguf by_interval;
    by_interval.erase_key("qwen35.attention.recurrent_layers");
    by_interval.set("qwen35.full_attention_interval", TinyGguf::u32(2));
    folder.write("m.gguf", by_interval.bytes());
    CHECK(refusal_of(folder.path() / "m.gguf").says("missing"));
}
