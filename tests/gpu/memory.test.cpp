// What was in lent device memory before must not matter.
#include <algorithm>
#include <cmath>

#include "tests/gpu/cuda_engine.hpp"

using namespace kestrel::test;

namespace {

const kestrel_allocate& memory_table() {
    return capability<kestrel_allocate>(cuda_api(), KESTREL_CAP_ALLOCATE);
}
const kestrel_borrow& borrow_table() {
    return capability<kestrel_borrow>(cuda_api(), KESTREL_CAP_BORROW);
}

// Device memory with every byte set.
class Filled {
  public:
    Filled(std::size_t bytes, int byte) : bytes_(bytes) {
        if (memory_table().allocate(KESTREL_MEMORY_DEVICE, bytes, &data_) != KESTREL_OK ||
            memory_table().fill(KESTREL_MEMORY_DEVICE, data_, byte, bytes) != KESTREL_OK) {
            throw std::runtime_error(cuda_api().last_error());
        }
    }
    ~Filled() { memory_table().release(KESTREL_MEMORY_DEVICE, data_); }
    Filled(const Filled&) = delete;
    Filled& operator=(const Filled&) = delete;
    [[nodiscard]] void* get() const { return data_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::vector<std::byte> content() const {
        std::vector<std::byte> out(bytes_);
        if (memory_table().copy_out(KESTREL_MEMORY_DEVICE, data_, out.data(), bytes_) != KESTREL_OK) {
            throw std::runtime_error(cuda_api().last_error());
        }
        return out;
    }

  private:
    void* data_ = nullptr;
    std::size_t bytes_;
};

kestrel_memory_needs needs_of(const CudaArgs& args) {
    kestrel_memory_needs needs{};
    needs.struct_size = sizeof needs;
    REQUIRE(borrow_table().needs(&args.args, &needs) == KESTREL_OK);
    return needs;
}

void lend_weights(CudaArgs& args, const Filled& weights) {
    args.args.weights = weights.get();
    args.args.weights_bytes = weights.bytes();
}

// The first difference, as a test can print it.
std::size_t first_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

}  // namespace

TEST_CASE("a model loads to the same bytes whatever the memory held, also between its tensors", "[gpu]") {
    // The first has vectors of three elements, so there is room behind them up to the next tensor.
    const std::string model = GENERATE(checkpoint("bf16-4l-k128").string(), gguf("bf16-4l-k128.mixed-q8_0-f16.gguf").string());
    CAPTURE(model);
    CudaArgs args(model, "reg", "stream");
    const std::size_t bytes = needs_of(args).weights_bytes;
    const Filled zeros(bytes, 0x00);
    const Filled ones(bytes, 0xff);
    for (const Filled* weights : {&zeros, &ones}) {
        lend_weights(args, *weights);
        REQUIRE(borrow_table().load(&args.args) == KESTREL_OK);
    }
    const std::vector<std::byte> expected = zeros.content();
    const std::vector<std::byte> found = ones.content();
    CAPTURE(first_difference(expected, found), bytes);
    CHECK(found == expected);
}

TEST_CASE("a workspace may hold anything", "[gpu]") {
    const std::string model = GENERATE(checkpoint("bf16-4l-k128").string(), checkpoint("f32-4l").string(), description("mini-64l"));
    const std::string launch = GENERATE(std::string("stream"), std::string("graph"));
    CAPTURE(model, launch);
    CudaArgs args(model, "reg", launch);
    const Filled zeros(needs_of(args).workspace_bytes, 0x00);
    const Filled ones(zeros.bytes(), 0xff);  // not-a-number wherever it is read as f32
    args.args.workspace_bytes = zeros.bytes();
    args.args.workspace = zeros.get();
    Engine clean(cuda_api(), args);
    args.args.workspace = ones.get();
    Engine used(cuda_api(), args);
    for (std::int32_t t = 0; t < 70; ++t) {  // into the second of attention's chunks
        REQUIRE(used.decode(t + 3) == clean.decode(t + 3));
    }
    const std::vector<float> logits = clean.logits();
    REQUIRE(std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }));
    CHECK(same_bits(used.logits(), logits));
    CHECK(same_bits(used.save(), clean.save()));
}
