// The digest of weights, computed here a second time, one value after another, as digest.hpp defines it.
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "engine/digest.hpp"
#include "engine/weights.hpp"
#include "tests/engine/engine_under_test.hpp"

using namespace kestrel;

namespace {

using Bytes = std::vector<std::uint8_t>;

// Collects what a hash takes and works it off at the end.
class PlainHash {
  public:
    void block(std::uint64_t first) { number_block({first, 0, 0, 0}); }
    void number_block(const HashWords& words) {
        for (const std::uint64_t word : words) number(word);
    }
    void number(std::uint64_t word) {
        for (int byte = 0; byte < 8; ++byte) taken_.push_back(static_cast<std::uint8_t>(word >> (8 * byte)));
    }
    void bytes(const Bytes& content) {
        block(content.size());
        taken_.insert(taken_.end(), content.begin(), content.end());
        while (taken_.size() % 32 != 0) taken_.push_back(0);
    }
    [[nodiscard]] HashWords words() const {
        HashWords w{mix(1), mix(2), mix(3), mix(4)};
        for (std::size_t at = 0; at < taken_.size(); at += 8) {
            std::uint64_t word = 0;
            for (std::size_t byte = 8; byte-- > 0;) word = word << 8 | taken_[at + byte];
            std::uint64_t& mine = w[at / 8 % 4];
            mine = std::rotl((mine ^ word) * 0x9E3779B97F4A7C15ULL, 29) * 0xBF58476D1CE4E5B9ULL;
        }
        for (int i = 0; i < 8; ++i) w[i % 4] = mix(w[i % 4] + w[(i + 1) % 4] * static_cast<std::uint64_t>(2 * (i % 4) + 3));
        return w;
    }

  private:
    Bytes taken_;
};

void add_float(Bytes& bytes, float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int byte = 0; byte < 4; ++byte) bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
}

// The canonical values of a block: conv1d.weight is held as [tap][channel].
std::vector<float> canonical(const TensorSpec& tensor, const std::byte* block) {
    std::vector<float> held(tensor.elements());
    dequantise(tensor.type, block + tensor.offset, held);
    if (tensor.role != Role::conv) return held;
    std::vector<float> values;
    for (std::uint64_t c = 0; c < tensor.shape[0]; ++c) {
        for (std::uint64_t t = 0; t < tensor.shape[2]; ++t) values.push_back(held[t * tensor.shape[0] + c]);
    }
    return values;
}

std::string plain_digest(const WeightLayout& layout, const std::byte* block) {
    PlainHash whole;
    whole.block(layout.tensors().size());
    for (const TensorSpec& tensor : layout.tensors()) {
        PlainHash hash;
        hash.bytes(Bytes(tensor.name.begin(), tensor.name.end()));
        hash.block(8 * tensor.shape.size());
        for (std::size_t i = 0; i < 4; ++i) hash.number(i < tensor.shape.size() ? tensor.shape[i] : 0);
        const std::vector<float> values = canonical(tensor, block);
        hash.block(values.size());
        for (std::size_t first = 0; first < values.size(); first += 1048576) {
            Bytes bytes;
            for (std::size_t i = first; i < std::min<std::size_t>(values.size(), first + 1048576); ++i) add_float(bytes, values[i]);
            PlainHash chunk;
            chunk.bytes(bytes);
            hash.number_block(chunk.words());
        }
        whole.number_block(hash.words());
    }
    std::string text;
    for (const std::uint64_t word : whole.words()) {
        for (int digit = 15; digit >= 0; --digit) text += "0123456789abcdef"[(word >> (4 * digit)) % 16];
    }
    return text;
}

// An embedding of two whole chunks and a piece, and rows that no chunk ends with.
ModelDims dims() {
    ModelDims d;
    d.vocab = 8500;
    d.hidden = 256;
    d.intermediate = 768;
    d.heads = 2;
    d.kv_heads = 1;
    d.head_dim = 128;
    d.rotary_dim = 32;
    d.rope_theta = 1e6;
    d.rms_eps = 1e-6;
    d.k_heads = 2;
    d.v_heads = 4;
    d.k_dim = 64;
    d.v_dim = 64;
    d.conv_taps = 3;
    d.tied_head = true;
    d.full_attention = {false, true};
    validate(d, "test");
    return d;
}

struct Block {
    explicit Block(TensorType matrices) : layout(dims(), [=](const TensorSpec&) { return matrices; }), bytes(layout.bytes()) {
        std::uint64_t state = 12345;
        for (const TensorSpec& tensor : layout.tensors()) {
            // Any byte is a value of q8_0 but for its scale: 1.0 in half precision. f32 values are whole numbers here.
            for (std::uint64_t at = 0; at < tensor.bytes(); at += tensor.type == TensorType::f32 ? 4 : 1) {
                state = mix(state + 0x9E3779B97F4A7C15ULL);
                if (tensor.type == TensorType::f32) {
                    const auto value = static_cast<float>(state >> 40);
                    std::memcpy(&bytes[tensor.offset + at], &value, sizeof value);
                } else {
                    bytes[tensor.offset + at] = static_cast<std::byte>(at % 34 == 0 ? 0x00 : at % 34 == 1 ? 0x3C : state >> 56);
                }
            }
        }
    }
    [[nodiscard]] std::string digest(std::uint32_t threads = 1) const { return digest_of(layout, bytes.data(), threads); }

    WeightLayout layout;
    std::vector<std::byte> bytes;
};

}  // namespace

TEST_CASE("the digest of weights is the defined one, whatever the threads and the stored type", "[engine][digest]") {
    const TensorType type = GENERATE(TensorType::f32, TensorType::q8_0);
    const Block block(type);
    const std::string expected = plain_digest(block.layout, block.bytes.data());
    for (const std::uint32_t threads : {1U, 2U, 3U, 8U}) CHECK(block.digest(threads) == expected);
}

TEST_CASE("every value, its place and the names count in the digest", "[engine][digest]") {
    Block block(TensorType::f32);
    const std::string before = block.digest();
    for (const TensorSpec& tensor : block.layout.tensors()) {
        CAPTURE(tensor.name);
        for (const std::uint64_t element : {std::uint64_t{0}, tensor.elements() / 2, tensor.elements() - 1}) {
            std::byte& low = block.bytes[tensor.offset + 4 * element];
            low ^= std::byte{1};
            CHECK(block.digest(2) != before);
            low ^= std::byte{1};
        }
    }
    // Two chunks exchanged.
    auto* embedding = reinterpret_cast<float*>(block.bytes.data() + block.layout.tensors()[0].offset);
    std::swap_ranges(embedding, embedding + chunk_elements, embedding + chunk_elements);
    CHECK(block.digest() != before);
    CHECK(tensor_hash("a", {}, 0, {}) != tensor_hash("b", {}, 0, {}));
    const std::uint64_t wide[] = {2, 3};
    const std::uint64_t tall[] = {3, 2};
    CHECK(tensor_hash("a", wide, 6, {}) != tensor_hash("a", tall, 6, {}));
}

// Computed from the checkpoints' files by a program in another language that follows digest.hpp.
TEST_CASE("digests of the checkpoints", "[engine][digest]") {
    using namespace kestrel::test;
    const auto [name, expected] = GENERATE(table<std::string, std::string>({
        {"f32-4l", "ccbb8346a26d84cad2d24a5e09cf1e2433f3ac5f2bff29e620435226ee864188"},
        {"bf16-4l-k128", "055fab4d294ecddc1ef449c7707682ac904358a63af719fbf34ae079f3a5417e"},
    }));
    Args args(checkpoint(name).string());
    args.threads(2);
    const auto& borrow = capability<kestrel_borrow>(engine_api(), KESTREL_CAP_BORROW);
    kestrel_memory_needs needs{};
    needs.struct_size = sizeof needs;
    REQUIRE(borrow.needs(&args.args, &needs) == KESTREL_OK);
    const std::size_t bytes = (needs.weights_bytes + needs.alignment - 1) / needs.alignment * needs.alignment;
    const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(needs.alignment, bytes), std::free);
    args.args.weights = memory.get();
    args.args.weights_bytes = bytes;
    REQUIRE(borrow.load(&args.args) == KESTREL_OK);
    char digest[65];
    REQUIRE(borrow.digest(&args.args, digest) == KESTREL_OK);
    CHECK(std::string(digest) == expected);
}
