#include "runner/session/operator_cases.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "runner/plan/random.hpp"
#include "runner/record/error.hpp"

namespace kestrel::session {
namespace {

using plugin::OperatorTensor;
using Shape = std::vector<std::uint64_t>;

constexpr double u = 0x1p-24;
// A function such as exp or a reciprocal, with what is multiplied to it: a few units in the last place.
constexpr double few = 8.0 * u;

std::size_t elements(const Shape& shape) {
    std::size_t count = 1;
    for (const std::uint64_t extent : shape) count *= extent;
    return count;
}

// Values in [low, high) with 24 random bits: exact in f32, the same on every machine.
class Inputs {
  public:
    explicit Inputs(std::uint64_t seed) : random_(seed) {}
    OperatorTensor operator()(const Shape& shape, double low, double high) {
        OperatorTensor tensor{shape, std::vector<float>(elements(shape))};
        for (float& value : tensor.values) {
            value = static_cast<float>(low + (high - low) * static_cast<double>(random_.next() >> 40U) * 0x1p-24);
        }
        return tensor;
    }

  private:
    Random random_;
};

OperatorTensor empty_of(const Shape& shape) {
    return {shape, std::vector<float>(elements(shape))};
}

double at(const OperatorTensor& tensor, std::size_t index) {
    return static_cast<double>(tensor.values[index]);
}

struct GdnShape {
    std::size_t k_heads, heads, kd, vd;
};

// S' = alpha S + k d with d = beta (v - sum alpha S k), o = sum S' q. Errors: alpha is rounded and multiplied (2 u), the sum has
// sum_bound; d adds three roundings of its parts; S' three of its terms; o is a sum of S', whose errors it inherits.
void gdn_bounds(const GdnShape& s, OperatorCase& one) {
    const auto& in = one.inputs;
    std::vector<double> state_bound(s.heads * s.kd * s.vd);
    std::vector<double> out_bound(s.heads * s.vd);
    const double c = sum_bound(s.kd);
    for (std::size_t h = 0; h < s.heads; ++h) {
        const double alpha = std::exp(at(in[4], h));
        const double beta = at(in[5], h);
        const std::size_t kh = h / (s.heads / s.k_heads) * s.kd;
        for (std::size_t j = 0; j < s.vd; ++j) {
            double read = 0.0;
            double magnitude = 0.0;
            for (std::size_t i = 0; i < s.kd; ++i) {
                const double term = alpha * at(in[0], (h * s.kd + i) * s.vd + j) * at(in[2], kh + i);
                read += term;
                magnitude += std::fabs(term);
            }
            const double v = at(in[3], h * s.vd + j);
            const double d = beta * (v - read);
            const double d_error = beta * ((c + 4.0 * u) * magnitude + 3.0 * u * (std::fabs(v) + magnitude));
            double out = 0.0;
            double inherited = 0.0;
            for (std::size_t i = 0; i < s.kd; ++i) {
                const std::size_t index = (h * s.kd + i) * s.vd + j;
                const double kept = alpha * at(in[0], index);
                const double added = at(in[2], kh + i) * d;
                state_bound[index] = 4.0 * u * (std::fabs(kept) + std::fabs(added)) + std::fabs(at(in[2], kh + i)) * d_error;
                out += std::fabs((kept + added) * at(in[1], kh + i));
                inherited += state_bound[index] * std::fabs(at(in[1], kh + i));
            }
            out_bound[h * s.vd + j] = inherited + (c + 2.0 * u) * out;
        }
    }
    one.bounds = {std::move(state_bound), std::move(out_bound)};
}

OperatorCase gdn_case(const GdnShape& s, Inputs& inputs) {
    OperatorCase one;
    one.op = "gdn_delta";
    one.principal = true;
    one.shape =
        std::to_string(s.heads) + " heads over " + std::to_string(s.k_heads) + ", " + std::to_string(s.kd) + " x " + std::to_string(s.vd);
    const double unit = 2.0 / std::sqrt(static_cast<double>(s.kd));  // so that q and k are of length about 1
    one.inputs = {inputs({s.heads, s.kd, s.vd}, -1.0, 1.0), inputs({s.k_heads, s.kd}, -unit, unit), inputs({s.k_heads, s.kd}, -unit, unit),
                  inputs({s.heads, s.vd}, -1.0, 1.0),       inputs({s.heads}, -2.0, 0.0),           inputs({s.heads}, 0.0, 1.0)};
    one.outputs = {empty_of({s.heads, s.kd, s.vd}), empty_of({s.heads, s.vd})};
    one.output_names = {"S'", "o"};
    gdn_bounds(s, one);
    return one;
}

// The sum of n products: its roundings are as large as the partial sums they are made in, and those stay below both the sum of magnitudes
// and, because the inputs' signs are random, 6 sqrt(sum of squares), in any order (Hoeffding: else with a probability of 2 e^-18 each).
// Forming a product rounds `roundings` times, independently of the others.
double product_sum_bound(std::size_t n, double magnitudes, double squares, double roundings) {
    const double partial = std::min(magnitudes, 6.0 * std::sqrt(squares));
    return (sum_bound(n) + roundings * u) * partial;
}

// y = A x by row. Of blocks, each element counts as twice its block's largest: that is how far levels reach, and an engine may sum levels
// and offsets apart; a weight made of level, scale and offset has four roundings more than a plain one. 16-bit types may round up by 2^-8.
std::vector<double> row_bounds(const OperatorTensor& a, const OperatorTensor& x, std::size_t block) {
    const std::size_t cols = x.values.size();
    std::vector<double> bounds(a.values.size() / cols);
    for (std::size_t r = 0; r < bounds.size(); ++r) {
        double magnitudes = 0.0;
        double squares = 0.0;
        for (std::size_t b = 0; b < cols; b += block) {
            double largest = 0.0;
            for (std::size_t c = b; c < b + block; ++c) largest = std::max(largest, std::fabs(at(a, r * cols + c)));
            for (std::size_t c = b; c < b + block; ++c) {
                const double term = (block == 1 ? 1.01 : 2.0) * largest * std::fabs(at(x, c));
                magnitudes += term;
                squares += term * term;
            }
        }
        bounds[r] = product_sum_bound(cols, magnitudes, squares, block == 1 ? 2.0 : 6.0);
    }
    return bounds;
}

std::string by(std::size_t rows, std::size_t cols) {
    return std::to_string(rows) + " x " + std::to_string(cols);
}

OperatorCase gemv2_case(std::size_t rows, std::size_t cols, Inputs& inputs) {
    OperatorCase one;
    one.op = "f32_gemv2";
    one.shape = by(rows, cols);
    one.inputs = {inputs({rows, cols}, -1.0, 1.0), inputs({rows, cols}, -1.0, 1.0), inputs({cols}, -1.0, 1.0)};
    one.outputs = {empty_of({rows}), empty_of({rows})};
    one.output_names = {"ya", "yb"};
    one.bounds = {row_bounds(one.inputs[0], one.inputs[2], 1), row_bounds(one.inputs[1], one.inputs[2], 1)};
    return one;
}

OperatorCase q_gemv_case(const std::string& type, std::size_t block, std::size_t rows, std::size_t cols, Inputs& inputs) {
    OperatorCase one;
    one.op = "q_gemv";
    one.stored_type = type;
    one.principal = type == "q4_0";
    one.shape = by(rows, cols);
    one.inputs = {inputs({rows, cols}, -1.0, 1.0), inputs({cols}, -1.0, 1.0)};
    one.outputs = {empty_of({rows})};
    one.output_names = {"y"};
    one.bounds = {row_bounds(one.inputs[0], one.inputs[1], block)};
    return one;
}

struct AttentionShape {
    std::size_t positions, kv_heads, heads, dim;
};

// out = sigmoid(gate) sum p v. A score is a sum of dim products, scaled: off by `score_error`, which exp turns into a relative error, as it
// does the rounding of its argument; numerator and denominator are sums over the positions.
std::vector<double> attention_bounds(const AttentionShape& s, const OperatorCase& one) {
    const auto& in = one.inputs;
    const double scale = 1.0 / std::sqrt(static_cast<double>(s.dim));
    std::vector<double> bounds(s.heads * s.dim);
    for (std::size_t h = 0; h < s.heads; ++h) {
        const std::size_t kv = h / (s.heads / s.kv_heads);
        std::vector<double> score(s.positions);
        double score_error = 0.0;
        for (std::size_t p = 0; p < s.positions; ++p) {
            double magnitude = 0.0;
            double squares = 0.0;
            for (std::size_t i = 0; i < s.dim; ++i) {
                const double term = scale * at(in[0], h * s.dim + i) * at(in[2], (p * s.kv_heads + kv) * s.dim + i);
                score[p] += term;
                magnitude += std::fabs(term);
                squares += term * term;
            }
            score_error = std::max(score_error, product_sum_bound(s.dim, magnitude, squares, 3.0));
        }
        const auto [low, high] = std::minmax_element(score.begin(), score.end());
        const double relative = std::expm1(2.0 * (score_error + u * (*high - *low))) + 2.0 * sum_bound(s.positions) + 2.0 * few;
        double total = 0.0;
        for (const double value : score) total += std::exp(value - *high);
        for (std::size_t i = 0; i < s.dim; ++i) {
            double magnitude = 0.0;
            for (std::size_t p = 0; p < s.positions; ++p) {
                magnitude += std::exp(score[p] - *high) / total * std::fabs(at(in[3], (p * s.kv_heads + kv) * s.dim + i));
            }
            bounds[h * s.dim + i] = relative * magnitude / (1.0 + std::exp(-at(in[1], h * s.dim + i)));
        }
    }
    return bounds;
}

OperatorCase attention_case(const AttentionShape& s, Inputs& inputs) {
    OperatorCase one;
    one.op = "attention";
    one.principal = true;
    one.shape = std::to_string(s.positions) + " positions, " + std::to_string(s.heads) + " heads over " + std::to_string(s.kv_heads) +
                " of " + std::to_string(s.dim);
    one.inputs = {inputs({s.heads, s.dim}, -2.0, 2.0), inputs({s.heads, s.dim}, -4.0, 4.0),
                  inputs({s.positions, s.kv_heads, s.dim}, -2.0, 2.0), inputs({s.positions, s.kv_heads, s.dim}, -1.0, 1.0)};
    one.outputs = {empty_of({s.heads, s.dim})};
    one.output_names = {"out"};
    one.bounds = {attention_bounds(s, one)};
    return one;
}

// y = x w / sqrt(mean + eps): the mean is a sum of positive terms, whose relative error the square root halves.
OperatorCase rms_case(std::size_t n, Inputs& inputs) {
    OperatorCase one;
    one.op = "rms_norm";
    one.shape = std::to_string(n);
    one.inputs = {inputs({n}, -3.0, 3.0), inputs({n}, 0.5, 1.5), {{1}, {1e-6F}}};
    one.outputs = {empty_of({n})};
    one.output_names = {"y"};
    double squares = 0.0;
    for (std::size_t i = 0; i < n; ++i) squares += at(one.inputs[0], i) * at(one.inputs[0], i);
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(n) + at(one.inputs[2], 0));
    std::vector<double> bounds(n);
    for (std::size_t i = 0; i < n; ++i) {
        bounds[i] = (0.5 * sum_bound(n) + few) * std::fabs(at(one.inputs[0], i) * at(one.inputs[1], i)) * factor;
    }
    one.bounds = {std::move(bounds)};
    return one;
}

// y = silu(t), t a sum over the taps. |silu'| < 1.1. The new state is copied samples.
OperatorCase conv_case(std::size_t taps, std::size_t channels, Inputs& inputs) {
    OperatorCase one;
    one.op = "conv_silu";
    one.shape = std::to_string(taps) + " taps, " + std::to_string(channels) + " channels";
    one.inputs = {inputs({taps - 1, channels}, -2.0, 2.0), inputs({taps, channels}, -1.0, 1.0), inputs({channels}, -2.0, 2.0)};
    one.outputs = {empty_of({taps - 1, channels}), empty_of({channels})};
    one.output_names = {"state'", "y"};
    std::vector<double> bounds(channels);
    for (std::size_t c = 0; c < channels; ++c) {
        double sum = 0.0;
        double magnitude = 0.0;
        for (std::size_t t = 0; t < taps; ++t) {
            const double sample = t + 1 < taps ? at(one.inputs[0], t * channels + c) : at(one.inputs[2], c);
            sum += sample * at(one.inputs[1], t * channels + c);
            magnitude += std::fabs(sample * at(one.inputs[1], t * channels + c));
        }
        bounds[c] = 1.1 * (sum_bound(taps) + u) * magnitude + few * std::fabs(sum / (1.0 + std::exp(-sum)));
    }
    one.bounds = {std::vector<double>((taps - 1) * channels), std::move(bounds)};
    return one;
}

}  // namespace

double sum_bound(std::size_t n) {
    const auto terms = static_cast<double>(n);
    return std::min(terms, 8.0 * std::sqrt(terms)) * u;
}

std::vector<OperatorCase> operator_cases(const std::string& check, std::uint64_t seed) {
    Inputs inputs(seed);
    std::vector<OperatorCase> cases;
    if (check == "gdn") {
        for (const GdnShape& s : std::array<GdnShape, 10>{{{1, 1, 1, 1},
                                                           {1, 1, 33, 20},
                                                           {2, 6, 32, 32},
                                                           {1, 3, 16, 17},
                                                           {2, 4, 5, 64},
                                                           {1, 2, 7, 65},
                                                           {3, 3, 24, 127},
                                                           {1, 2, 200, 192},
                                                           {2, 2, 3, 300},
                                                           {16, 48, 128, 128}}}) {
            cases.push_back(gdn_case(s, inputs));
        }
        for (const auto& [taps, channels] : {std::array<std::size_t, 2>{2, 1}, {3, 17}, {4, 320}, {4, 10240}}) {
            cases.push_back(conv_case(taps, channels, inputs));
        }
        for (const auto& [rows, cols] : {std::array<std::size_t, 2>{1, 1}, {5, 17}, {7, 33}, {6, 64}, {48, 5120}}) {
            cases.push_back(gemv2_case(rows, cols, inputs));
        }
    } else if (check == "rq") {
        constexpr std::array<std::pair<const char*, std::size_t>, 7> types{
            {{"q4_0", 32}, {"q4_1", 32}, {"q8_0", 32}, {"q6_k", 256}, {"f16", 1}, {"bf16", 1}, {"f32", 1}}};
        for (const auto& [type, block] : types) {
            for (const auto& [rows, blocks] : {std::array<std::size_t, 2>{1, 1}, {5, 3}, {64, 5}, {33, 20}, {3, 68}, {48, 16}, {16, 544}}) {
                // Scalar types take any width, so theirs are ragged.
                cases.push_back(q_gemv_case(type, block, rows, block == 1 ? blocks * 32 + rows % 32 : blocks * block, inputs));
            }
        }
    } else if (check == "attn") {
        for (const AttentionShape& s : std::array<AttentionShape, 7>{
                 {{1, 1, 1, 2}, {2, 2, 4, 32}, {17, 1, 2, 64}, {33, 2, 6, 40}, {100, 4, 24, 256}, {5, 1, 3, 7}, {513, 1, 2, 128}}}) {
            cases.push_back(attention_case(s, inputs));
        }
        for (const std::size_t n : {1U, 17U, 64U, 256U, 5120U}) cases.push_back(rms_case(n, inputs));
    } else {
        throw Error(ExitCode::usage, "no check \"" + check + "\"; there are gdn, rq, attn and model");
    }
    return cases;
}

}  // namespace kestrel::session
