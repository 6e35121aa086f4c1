// The projections beta and alpha, bit for bit: the order of a row's sum is fixed, however its loads are arranged.
#include <array>

#include "tests/gpu/device.hpp"

using namespace kestrel;
using namespace kestrel::test;

namespace {

constexpr std::size_t lanes = 32;

// Each lane's columns one after the other, then the tree: lane l adds lane l + step, for steps 16, 8, 4, 2, 1.
float row_dot(const float* row, const std::vector<float>& x) {
    std::array<float, lanes> sums{};
    for (std::size_t c = 0; c < x.size(); ++c) sums[c % lanes] += row[c] * x[c];
    for (std::size_t step = lanes / 2; step > 0; step /= 2) {
        for (std::size_t l = 0; l < step; ++l) sums[l] += sums[l + step];
    }
    return sums[0];
}

std::vector<float> product(const std::vector<float>& matrix, const std::vector<float>& x, std::size_t rows) {
    std::vector<float> y(rows);
    for (std::size_t r = 0; r < rows; ++r) y[r] = row_dot(matrix.data() + r * x.size(), x);
    return y;
}

}  // namespace

TEST_CASE("beta and alpha are the sums of a plain loop", "[gpu]") {
    const std::size_t rows = GENERATE(1U, 7U, 48U);
    // Below, at and beyond what one warp loads ahead, 1024 columns, and the 27B model's.
    const std::size_t cols = GENERATE(1U, 31U, 33U, 100U, 1000U, 1023U, 1024U, 1025U, 1056U, 2047U, 2048U, 5000U, 5120U);
    CAPTURE(rows, cols);
    Random random(static_cast<unsigned>(rows * 10000 + cols));
    const auto a = random(rows * cols);
    const auto b = random(rows * cols);
    const auto x = random(cols);
    const OnDevice as(a), bs(b), xs(x), ya(rows), yb(rows);
    cuda::launch_f32_gemv_pair(as.get(), bs.get(), xs.get(), rows, cols, ya.get(), yb.get(), nullptr);
    CHECK(same_bits(ya.values(), product(a, x, rows)));
    CHECK(same_bits(yb.values(), product(b, x, rows)));
}
