#include "engine/truth/steps.hpp"

#include <algorithm>
#include <cmath>

namespace kestrel::truth {
namespace {

// Above this the exponential decides alone: the bound that the reference implementations use.
constexpr double softplus_linear_from = 20.0;
constexpr double l2_eps = 1e-6;

double softplus(double x) {
    return x > softplus_linear_from ? x : std::log1p(std::exp(x));
}

double dot(In a, In b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

Vector scaled(In x, double factor) {
    Vector y(x.begin(), x.end());
    for (double& value : y) value *= factor;
    return y;
}

double sigmoid(double x) {
    return 1.0 / (1.0 + std::exp(-x));
}

double silu(double x) {
    return x * sigmoid(x);
}

}  // namespace

Vector row_of(const StoredTensor& matrix, std::size_t index, std::size_t cols) {
    std::vector<float> values(cols);
    dequantise(matrix.type, matrix.data + index * bytes_of(info_of(matrix.type), cols), values);
    return {values.begin(), values.end()};
}

Vector multiply(const StoredTensor& matrix, std::size_t rows, In x) {
    Vector y(rows);
    for (std::size_t r = 0; r < rows; ++r) y[r] = dot(row_of(matrix, r, x.size()), x);
    return y;
}

void add(Out h, In y) {
    for (std::size_t i = 0; i < h.size(); ++i) h[i] += y[i];
}

Vector rms_norm(In x, In w, double eps) {
    Vector y = scaled(x, 1.0 / std::sqrt(dot(x, x) / static_cast<double>(x.size()) + eps));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] *= w[i];
    return y;
}

Vector conv_silu(Out state, In w, In x) {
    const std::size_t channels = x.size();
    const std::size_t taps = w.size() / channels;
    Vector y(channels);
    for (std::size_t c = 0; c < channels; ++c) {
        double sum = x[c] * w[(taps - 1) * channels + c];
        for (std::size_t t = 0; t + 1 < taps; ++t) sum += state[t * channels + c] * w[t * channels + c];
        y[c] = silu(sum);
    }
    if (taps > 1) {
        std::copy(state.begin() + static_cast<std::ptrdiff_t>(channels), state.end(), state.begin());
        std::copy(x.begin(), x.end(), state.end() - static_cast<std::ptrdiff_t>(channels));
    }
    return y;
}

Gates gates(In b, In a, In rate, In dt_bias) {
    Gates out{Vector(b.size()), Vector(b.size())};
    for (std::size_t h = 0; h < b.size(); ++h) {
        out.beta[h] = sigmoid(b[h]);
        out.decay[h] = std::exp(rate[h] * softplus(a[h] + dt_bias[h]));
    }
    return out;
}

std::size_t key_head(std::size_t h, std::size_t v_heads, std::size_t k_heads, HeadOrder order) {
    return order == HeadOrder::grouped ? h / (v_heads / k_heads) : h % k_heads;
}

Vector l2_norm(In x) {
    return scaled(x, 1.0 / std::sqrt(dot(x, x) + l2_eps));
}

Vector gdn_delta(Out state, In q, In k, In v, double decay, double beta) {
    const std::size_t width = v.size();
    Vector read(width);  // S^T k
    for (std::size_t i = 0; i < k.size(); ++i) {
        for (std::size_t j = 0; j < width; ++j) {
            state[i * width + j] *= decay;
            read[j] += state[i * width + j] * k[i];
        }
    }
    Vector out(width);
    for (std::size_t i = 0; i < k.size(); ++i) {
        for (std::size_t j = 0; j < width; ++j) {
            state[i * width + j] += k[i] * beta * (v[j] - read[j]);
            out[j] += state[i * width + j] * q[i];
        }
    }
    return out;
}

Vector gated_norm(In x, In w, In z, double eps) {
    Vector y = rms_norm(x, w, eps);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] *= silu(z[i]);
    return y;
}

QueryAndGate split_query(In rows, std::size_t heads, std::size_t dim) {
    QueryAndGate out;
    for (std::size_t h = 0; h < heads; ++h) {
        const In q = rows.subspan(2 * h * dim, dim);
        const In gate = rows.subspan((2 * h + 1) * dim, dim);
        out.q.insert(out.q.end(), q.begin(), q.end());
        out.gate.insert(out.gate.end(), gate.begin(), gate.end());
    }
    return out;
}

// The three position streams of the multi-section form are equal for text, so this is plain RoPE.
Vector rotate(In head, std::size_t rotary_dim, double theta, std::size_t position) {
    Vector out(head.begin(), head.end());
    const std::size_t half = rotary_dim / 2;
    for (std::size_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(position) * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim));
        out[i] = head[i] * std::cos(angle) - head[i + half] * std::sin(angle);
        out[i + half] = head[i + half] * std::cos(angle) + head[i] * std::sin(angle);
    }
    return out;
}

Vector attention(In q, In gate, In keys, In values, std::size_t heads, std::size_t kv_heads, std::size_t dim) {
    const std::size_t positions = keys.size() / (kv_heads * dim);
    Vector out(heads * dim);
    for (std::size_t h = 0; h < heads; ++h) {
        const std::size_t kv = h / (heads / kv_heads);
        Vector score(positions);
        for (std::size_t p = 0; p < positions; ++p) {
            score[p] = dot(q.subspan(h * dim, dim), keys.subspan((p * kv_heads + kv) * dim, dim)) / std::sqrt(static_cast<double>(dim));
        }
        const double largest = *std::max_element(score.begin(), score.end());
        double total = 0.0;
        for (double& s : score) total += s = std::exp(s - largest);
        for (std::size_t i = 0; i < dim; ++i) {
            double sum = 0.0;
            for (std::size_t p = 0; p < positions; ++p) sum += score[p] / total * values[(p * kv_heads + kv) * dim + i];
            out[h * dim + i] = sum * sigmoid(gate[h * dim + i]);
        }
    }
    return out;
}

Vector gated(In gate, In up) {
    Vector out(gate.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = silu(gate[i]) * up[i];
    return out;
}

}  // namespace kestrel::truth
