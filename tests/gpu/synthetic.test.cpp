// Weights made on the device: the bytes that the host writes for the same description.
#include <fstream>

#include "engine/cuda/synthetic_weights.hpp"
#include "engine/synthetic.hpp"
#include "tests/engine/engine_under_test.hpp"
#include "tests/gpu/device.hpp"

using namespace kestrel;
using namespace kestrel::test;

namespace {

struct Shape {
    const char* matrices;
    const char* head;
    unsigned unit;  // every row of a matrix is a multiple of it
};

// Dimensions that fill no block of threads evenly.
std::string description_of(const Shape& s) {
    const auto number = [](const char* key, unsigned value) { return std::string(key) + " = " + std::to_string(value) + "\n"; };
    return std::string("name = \"ragged\"\nseed = 77\n\n[dims]\n") + number("vocab", 37) + number("hidden", 3 * s.unit) +
           number("intermediate", 5 * s.unit) + number("layers", 3) + number("full_attention_interval", 2) + number("heads", 3) +
           number("kv_heads", 1) + number("head_dim", s.unit) + number("rotary_dim", 2) + number("gdn_key_heads", 1) +
           number("gdn_value_heads", 3) + number("gdn_key_dim", 5) + number("gdn_value_dim", s.unit) + number("conv_taps", 3) +
           "rope_theta = 1.0e7\nrms_norm_eps = 1.0e-6\ntied_head = false\n\n[weights]\nmatrices = \"" + s.matrices + "\"\nhead = \"" +
           s.head + "\"\n";
}

}  // namespace

TEST_CASE("weights made on the device are the host's", "[gpu]") {
    const auto s = GENERATE(Shape{"f32", "bf16", 7}, Shape{"f16", "f32", 9}, Shape{"bf16", "f16", 11}, Shape{"q4_0", "q8_0", 32},
                            Shape{"q4_1", "q4_0", 96}, Shape{"q8_0", "q4_1", 64}, Shape{"q6_k", "q6_k", 256}, Shape{"q4_0", "q6_k", 256});
    CAPTURE(s.matrices, s.head, s.unit);
    const TemporaryFolder folder;
    folder.write("model.toml", description_of(s));
    const auto file = folder.path() / "model.toml";
    const std::uint64_t seed = read_description(file).seed;
    const auto source = open_description(file);
    const WeightLayout layout = layout_of(*source, WeightFormat::stored);
    std::vector<std::byte> block(layout.bytes());
    source->load(layout, 1, block.data());

    constexpr std::size_t room = 64;  // behind a tensor, where nothing may be written
    std::uint64_t number = 0;
    for (const TensorSpec& tensor : layout.tensors()) {
        CAPTURE(tensor.name);
        const auto memory = cuda::make_buffer<std::byte>(tensor.bytes() + room);
        cuda::check(cudaMemset(memory.get(), 0xA5, memory.bytes()), "preparing test data");
        cuda::make_synthetic_tensor(seed, number++, tensor, memory.get(), nullptr);
        std::vector<std::byte> found(memory.bytes());
        cuda::check(cudaMemcpy(found.data(), memory.get(), memory.bytes(), cudaMemcpyDeviceToHost), "fetching test data");
        const auto begin = block.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
        std::vector<std::byte> expected(begin, begin + static_cast<std::ptrdiff_t>(tensor.bytes()));
        expected.resize(expected.size() + room, std::byte{0xA5});
        REQUIRE(found == expected);
    }
}

TEST_CASE("making weights refuses what it cannot write", "[gpu]") {
    const OnDevice some(64);
    auto* out = reinterpret_cast<std::byte*>(some.get());
    const cuda::SyntheticValues levels{.key = 1, .levels = true, .centre = 0.0F, .unit = 0.5F};
    const cuda::SyntheticValues spread{.key = 1, .levels = false, .centre = 1.0F, .unit = 0.5F};
    CHECK_THROWS(cuda::launch_synthetic(levels, TensorType::q4_0, 1, 33, false, out, nullptr));
    CHECK_THROWS(cuda::launch_synthetic(levels, TensorType::f32, 0, 4, false, out, nullptr));
    CHECK_THROWS(cuda::launch_synthetic(spread, TensorType::f16, 1, 4, false, out, nullptr));
    CHECK_THROWS(cuda::launch_synthetic(levels, TensorType::bf16, 2, 4, true, out, nullptr));
}
