// Matrix-vector kernels against sums in double, on shapes that fill no block and no warp evenly.
#include <algorithm>

#include "engine/cuda/arrangement.hpp"
#include "engine/cuda/split.hpp"
#include "engine/quantise.hpp"
#include "tests/gpu/device.hpp"

using namespace kestrel;
using namespace kestrel::test;

namespace {

struct Product {
    std::vector<double> y;
    std::vector<double> magnitude;  // sum of |w x|
};

Product reference(const std::vector<float>& w, const std::vector<float>& x, std::size_t rows) {
    Product p{std::vector<double>(rows), std::vector<double>(rows)};
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < x.size(); ++c) {
            const double term = double{w[r * x.size() + c]} * x[c];
            p.y[r] += term;
            p.magnitude[r] += std::abs(term);
        }
    }
    return p;
}

// A term passes through its product, at most cols / 32 + 32 additions of its lane and its block, five of the tree, and up to four roundings
// of its weight: each adds half an ulp of the sum of magnitudes.
void check_close(const std::vector<float>& found, const Product& expected, std::size_t cols) {
    const double steps = static_cast<double>(cols) / 32.0 + 48.0;
    for (std::size_t r = 0; r < found.size(); ++r) {
        CAPTURE(r, found[r], expected.y[r]);
        REQUIRE(std::isfinite(found[r]));
        REQUIRE(std::abs(found[r] - expected.y[r]) <= steps * half_ulp * expected.magnitude[r] + 1e-30);
    }
}

}  // namespace

TEST_CASE("stored matrices times a vector", "[gpu]") {
    const auto type = GENERATE(TensorType::f32, TensorType::f16, TensorType::bf16, TensorType::q4_0, TensorType::q4_1, TensorType::q8_0,
                               TensorType::q6_k);
    // Tiles where rows are sixteens, and columns five-hundred-and-twelves.
    const std::size_t rows = GENERATE(1U, 3U, 16U, 17U, 100U, 144U);
    const std::size_t units = GENERATE(1U, 2U, 5U, 16U, 33U, 72U, 160U);
    const TensorTypeInfo& info = info_of(type);
    const std::size_t cols = units * info.block_elements;
    CAPTURE(info.name, rows, cols);
    Random random(static_cast<unsigned>(rows * 1000 + cols));
    const std::vector<float> values = random(rows * cols);
    const std::vector<float> x = random(cols, -2.0F, 2.0F);
    const std::vector<std::byte> stored = quantise(type, values);
    std::vector<float> held(values.size());
    dequantise(type, stored.data(), held);
    const cuda::Buffer<std::byte> matrix = cuda::make_buffer<std::byte>(stored.size());
    cuda::put_tensor(type, rows, cols, stored.data(), matrix.get());

    const OnDevice xs(x);
    const OnDevice y(rows);
    const OnDevice parts(cuda::split_floats(cols));
    const cuda::Matrix m{matrix.get(), type, rows, cols};
    REQUIRE(m.in_tiles() == ((type == TensorType::q4_0 || type == TensorType::q6_k) && rows % 16 == 0 && cols % 512 == 0));
    if (m.in_tiles()) cuda::launch_split(xs.get(), cols, parts.get(), nullptr);
    const cuda::Activations both{xs.get(), parts.get()};
    cuda::launch_gemv(m, both, y.get(), cuda::Store::replace, nullptr);
    const Product expected = reference(held, x, rows);
    check_close(y.values(), expected, cols);

    // Adding rounds once more, and to the same value every time.
    const std::vector<float> before = random(rows);
    const OnDevice sum(before);
    cuda::launch_gemv(m, both, sum.get(), cuda::Store::add, nullptr);
    const std::vector<float> product = y.values();
    const std::vector<float> found = sum.values();
    for (std::size_t r = 0; r < rows; ++r) REQUIRE(found[r] == before[r] + product[r]);

    // A row of it as an embedding.
    const cuda::Buffer<cuda::Control> control = cuda::make_buffer<cuda::Control>(1);
    const cuda::Control host{.token = static_cast<std::int32_t>(rows / 2), .position = 0, .next = 0, .unused = 0};
    cuda::check(cudaMemcpy(control.get(), &host, sizeof host, cudaMemcpyHostToDevice), "sending test data");
    const OnDevice row(cols);
    cuda::launch_embed(m, control.get(), row.get(), nullptr);
    const auto first = held.begin() + static_cast<std::ptrdiff_t>(rows / 2 * cols);
    REQUIRE(same_bits(row.values(), std::vector<float>(first, first + static_cast<std::ptrdiff_t>(cols))));
}

TEST_CASE("several matrices times one vector are the same bits as one after the other", "[gpu]") {
    const std::size_t cols = GENERATE(512U, 1536U, 5120U);
    CAPTURE(cols);
    Random random(static_cast<unsigned>(cols));
    const std::vector<float> x = random(cols);
    const OnDevice xs(x);
    const OnDevice parts(cuda::split_floats(cols));
    cuda::launch_split(xs.get(), cols, parts.get(), nullptr);
    const cuda::Activations both{xs.get(), parts.get()};
    std::vector<cuda::Buffer<std::byte>> stored;
    std::vector<OnDevice> together;
    std::vector<OnDevice> alone;
    std::vector<cuda::Product> products;
    // In tiles, not in tiles, and more in tiles than one launch takes.
    for (const std::size_t rows : {32U, 7U, 16U, 48U, 16U, 64U}) {
        const std::vector<std::byte> matrix = quantise(TensorType::q4_0, random(rows * cols));
        stored.push_back(cuda::make_buffer<std::byte>(matrix.size()));
        cuda::put_tensor(TensorType::q4_0, rows, cols, matrix.data(), stored.back().get());
        together.emplace_back(rows);
        alone.emplace_back(rows);
        products.push_back({{stored.back().get(), TensorType::q4_0, rows, cols}, together.back().get()});
        cuda::launch_gemv(products.back().m, both, alone.back().get(), cuda::Store::replace, nullptr);
    }
    cuda::launch_gemvs(products, both, cuda::Store::replace, nullptr);
    for (std::size_t i = 0; i < together.size(); ++i) CHECK(same_bits(together[i].values(), alone[i].values()));
}

TEST_CASE("activations are split where they are made as they are split afterwards", "[gpu]") {
    const std::size_t n = GENERATE(64U, 1024U, 5120U);
    CAPTURE(n);
    Random random(static_cast<unsigned>(n));
    const OnDevice x(random(n, -100.0F, 100.0F));
    const OnDevice w(random(n));
    const OnDevice y(n);
    const OnDevice made(cuda::split_floats(n));
    const OnDevice afterwards(cuda::split_floats(n));
    const auto same = [&](const OnDevice& values) {
        cuda::launch_split(values.get(), n, afterwards.get(), nullptr);
        CHECK(same_bits(made.values(), afterwards.values()));
    };
    cuda::launch_rms_norm(x.get(), w.get(), n, 1e-6F, y.get(), made.get(), nullptr);
    same(y);
    cuda::launch_silu_mul(x.get(), w.get(), n, made.get(), nullptr);
    same(x);
    cuda::launch_gated_rms_norm(x.get(), w.get(), y.get(), n / 32, 32, 1e-6F, made.get(), nullptr);
    same(x);
}

TEST_CASE("beta and alpha", "[gpu]") {
    const std::size_t rows = GENERATE(1U, 6U, 7U, 48U);
    const std::size_t cols = GENERATE(1U, 31U, 100U, 5120U);
    CAPTURE(rows, cols);
    Random random(static_cast<unsigned>(rows * 10000 + cols));
    const auto a = random(rows * cols);
    const auto b = random(rows * cols);
    const auto x = random(cols);
    const OnDevice as(a);
    const OnDevice bs(b);
    const OnDevice xs(x);
    const OnDevice ya(rows);
    const OnDevice yb(rows);
    cuda::launch_f32_gemv_pair(as.get(), bs.get(), xs.get(), rows, cols, ya.get(), yb.get(), nullptr);
    check_close(ya.values(), reference(a, x, rows), cols);
    check_close(yb.values(), reference(b, x, rows), cols);
}

TEST_CASE("launchers refuse what their kernels cannot take", "[gpu]") {
    const OnDevice some(64);
    const auto* bytes = reinterpret_cast<const std::byte*>(some.get());
    CHECK_THROWS(cuda::launch_gemv({nullptr, TensorType::f32, 0, 4}, {some.get()}, some.get(), cuda::Store::replace, nullptr));
    CHECK_THROWS(cuda::launch_gemv({bytes, TensorType::q4_0, 1, 33}, {some.get()}, some.get(), cuda::Store::replace, nullptr));
    CHECK_THROWS(cuda::launch_gemv({bytes, TensorType::q4_0, 16, 512}, {some.get()}, some.get(), cuda::Store::replace, nullptr));
    CHECK_THROWS(cuda::launch_split(some.get(), 32, some.get(), nullptr));
    CHECK_THROWS(cuda::launch_f32_gemv_pair(some.get(), some.get(), some.get(), 0, 4, some.get(), some.get(), nullptr));
    const OnDevice other(64);
    CHECK_THROWS(cuda::launch_rms_norm(some.get(), some.get(), 0, 1e-6F, other.get(), nullptr, nullptr));
    CHECK_THROWS(cuda::launch_rms_norm(some.get(), some.get(), 32, 1e-6F, some.get(), nullptr, nullptr));
    CHECK_THROWS(cuda::blocks_for(0, 1));
    CHECK(cuda::blocks_for(1, 16) == 1);
    CHECK(cuda::blocks_for(16, 16) == 1);
    CHECK(cuda::blocks_for(17, 16) == 2);
    CHECK(cuda::blocks_for(96, 1) == 96);
}
