// Rotation, the heads' norms and attention over a growing cache, against the same in double.
#include <algorithm>

#include "tests/gpu/device.hpp"

using namespace kestrel;
using namespace kestrel::test;

namespace {

struct Shape {
    unsigned heads;
    unsigned kv_heads;
    unsigned dim;
    unsigned capacity;
    [[nodiscard]] unsigned pairs() const { return std::max(1U, dim / 8); }
};

struct Token {
    std::vector<float> q_and_gate, k, v;
};

Token token_for(const Shape& s, Random& random) {
    return {random(std::size_t{2} * s.heads * s.dim), random(std::size_t{s.kv_heads} * s.dim), random(std::size_t{s.kv_heads} * s.dim)};
}

std::vector<double> inverse_frequencies(unsigned pairs) {
    std::vector<double> values;
    for (unsigned i = 0; i < pairs; ++i) values.push_back(std::pow(1e7, -2.0 * i / (2.0 * pairs)));
    return values;
}

// A layer's norms, cache and scratch on the device; whatever nobody has written there reads as not-a-number.
class Layer {
  public:
    Layer(const Shape& shape, const std::vector<float>& q_norm, const std::vector<float>& k_norm)
        : s_(shape),
          frequencies_(cuda::make_buffer<double>(shape.pairs())),
          q_norm_(q_norm),
          k_norm_(k_norm),
          rotation_(std::size_t{2} * shape.pairs()),
          q_(std::size_t{shape.heads} * shape.dim),
          keys_(cache_floats()),
          values_(cache_floats()),
          scores_(attention_scratch_floats(shape.heads, shape.dim, shape.capacity)),
          out_(std::size_t{shape.heads} * shape.dim) {
        const std::vector<double> inverse = inverse_frequencies(shape.pairs());
        cuda::check(cudaMemcpy(frequencies_.get(), inverse.data(), frequencies_.bytes(), cudaMemcpyHostToDevice), "sending test data");
    }

    std::vector<float> attend(unsigned position, const Token& token) {
        const OnDevice projected(token.q_and_gate), k(token.k), v(token.v);
        const auto control = control_at(static_cast<std::int32_t>(position));
        const cuda::AttentionHeads a{.q_and_gate = projected.get(),
                                     .k = k.get(),
                                     .v = v.get(),
                                     .q_norm = q_norm_.get(),
                                     .k_norm = k_norm_.get(),
                                     .cosine = rotation_.get(),
                                     .sine = rotation_.get() + s_.pairs(),
                                     .q = q_.get(),
                                     .keys = keys_.get(),
                                     .values = values_.get(),
                                     .scores = scores_.get(),
                                     .out = out_.get(),
                                     .heads = s_.heads,
                                     .kv_heads = s_.kv_heads,
                                     .dim = s_.dim,
                                     .pairs = s_.pairs(),
                                     .capacity = s_.capacity,
                                     .eps = 1e-6F};
        cuda::launch_rotation(control.get(), frequencies_.get(), s_.pairs(), rotation_.get(), rotation_.get() + s_.pairs(), nullptr);
        cuda::launch_qkv_norm_rope(a, control.get(), nullptr);
        cuda::launch_attend(a, control.get(), nullptr);
        return out_.values();
    }

  private:
    [[nodiscard]] std::size_t cache_floats() const { return std::size_t{s_.kv_heads} * s_.capacity * s_.dim; }

    Shape s_;
    cuda::Buffer<double> frequencies_;
    OnDevice q_norm_, k_norm_, rotation_, q_, keys_, values_, scores_, out_;
};

// The same in double.
class Reference {
  public:
    Reference(const Shape& shape, std::vector<float> q_norm, std::vector<float> k_norm)
        : s_(shape), q_norm_(std::move(q_norm)), k_norm_(std::move(k_norm)), inverse_(inverse_frequencies(shape.pairs())) {}

    void add(const Token& token) {
        const auto position = static_cast<unsigned>(keys_.size());
        keys_.emplace_back(std::size_t{s_.kv_heads} * s_.dim);
        for (unsigned h = 0; h < s_.kv_heads; ++h) {
            norm_rope(token.k.data() + h * s_.dim, k_norm_, position, keys_.back().data() + h * s_.dim);
        }
        values_.push_back(token.v);
    }

    // Of the token added last.
    void check(const Token& token, const std::vector<float>& found) const {
        for (unsigned h = 0; h < s_.heads; ++h) check_head(token, h, found);
    }

  private:
    void norm_rope(const float* x, const std::vector<float>& w, unsigned position, double* to) const {
        const double factor = 1.0 / std::sqrt(sum_of_squares(x, s_.dim) / s_.dim + 1e-6F);
        for (unsigned i = 0; i < s_.dim; ++i) to[i] = x[i] * factor * w[i];
        for (unsigned i = 0; i < s_.pairs(); ++i) {
            const double angle = position * inverse_[i];
            const double first = to[i];
            const double second = to[i + s_.pairs()];
            to[i] = first * std::cos(angle) - second * std::sin(angle);
            to[i + s_.pairs()] = second * std::cos(angle) + first * std::sin(angle);
        }
    }

    void check_head(const Token& token, unsigned h, const std::vector<float>& found) const {
        const auto count = static_cast<unsigned>(keys_.size());
        const std::size_t kv = std::size_t{h / (s_.heads / s_.kv_heads)} * s_.dim;
        std::vector<double> q(s_.dim);
        norm_rope(token.q_and_gate.data() + std::size_t{2} * h * s_.dim, q_norm_, count - 1, q.data());
        std::vector<double> weights(count);
        double total = 0.0;
        double largest = 0.0;
        for (unsigned p = 0; p < count; ++p) {
            double score = 0.0;
            for (unsigned i = 0; i < s_.dim; ++i) score += q[i] * keys_[p][kv + i];
            score /= std::sqrt(static_cast<double>(s_.dim));
            largest = std::max(largest, std::abs(score));
            weights[p] = std::exp(score);
            total += weights[p];
        }
        std::vector<double> expected(s_.dim);
        std::vector<double> magnitude(s_.dim);
        for (unsigned p = 0; p < count; ++p) {
            for (unsigned i = 0; i < s_.dim; ++i) {
                const double term = weights[p] / total * values_[p][kv + i];
                expected[i] += term;
                magnitude[i] += std::abs(term);
            }
        }
        // A score is a sum of dim products of two normalised vectors, |q| |k| <= 2.25 dim. A term passes through dim / 8 + 3 additions and
        // carries the errors of its two factors, dim / 64 + 32 half ulps each from the norm and four from the rotation. That many half ulps
        // over sqrt(dim) are the score's absolute error; so are half an ulp of itself, and of its differences from the largest of its chunk
        // and of that from the largest of all, up to twice the largest each. A score's absolute error is the relative error of a weight,
        // twice with the normalisation. Then up to position + 1 additions, and five functions of up to four half ulps with their products.
        const double score_error = (s_.dim / 8.0 + s_.dim / 32.0 + 80.0) * 2.25 * std::sqrt(static_cast<double>(s_.dim)) + 5.0 * largest;
        for (unsigned i = 0; i < s_.dim; ++i) {
            const std::size_t at = std::size_t{h} * s_.dim + i;
            const double wanted = expected[i] * sigmoid(token.q_and_gate[(std::size_t{2} * h + 1) * s_.dim + i]);
            CAPTURE(h, i, found[at], wanted);
            REQUIRE(std::abs(found[at] - wanted) <= (2.0 * score_error + count + 40.0) * half_ulp * magnitude[i]);
        }
    }

    Shape s_;
    std::vector<float> q_norm_, k_norm_;
    std::vector<double> inverse_;
    std::vector<std::vector<double>> keys_;  // per position [kv_heads][dim]
    std::vector<std::vector<float>> values_;
};

// Where chunks begin and end, and some between.
bool worth_checking(unsigned position, unsigned capacity) {
    const unsigned in_chunk = position % attention_chunk;
    return position < 12 || in_chunk < 2 || in_chunk + 2 >= attention_chunk || position % 23 == 0 || position + 1 == capacity;
}

}  // namespace

TEST_CASE("attention of one token after another", "[gpu]") {
    // One chunk and several; heads in one tile, in two, and alone; dimensions of one strip and of many, of whole fours and not.
    const auto s = GENERATE(Shape{6, 2, 8, 40}, Shape{6, 2, 32, 40}, Shape{6, 2, 256, 40}, Shape{24, 4, 256, 300}, Shape{6, 2, 32, 300},
                            Shape{5, 1, 20, 150}, Shape{3, 3, 7, 300}, Shape{4, 2, 7, 130}, Shape{20, 2, 64, 200}, Shape{8, 1, 300, 70},
                            Shape{3, 3, 384, 130}, Shape{3, 1, 4096, 66}, Shape{2, 2, 12, 64}, Shape{2, 1, 33, 65});
    CAPTURE(s.heads, s.kv_heads, s.dim, s.capacity);
    Random random(s.dim + s.capacity);
    const auto q_norm = random(s.dim, 0.5F, 1.5F);
    const auto k_norm = random(s.dim, 0.5F, 1.5F);
    Layer layer(s, q_norm, k_norm);
    Reference reference(s, q_norm, k_norm);
    for (unsigned position = 0; position < s.capacity; ++position) {
        CAPTURE(position);
        const Token token = token_for(s, random);
        const std::vector<float> found = layer.attend(position, token);
        reference.add(token);
        if (worth_checking(position, s.capacity)) reference.check(token, found);
    }
}

TEST_CASE("attention gives the same bits for any capacity", "[gpu]") {
    const auto s = GENERATE(Shape{24, 4, 256, 140}, Shape{6, 2, 32, 140}, Shape{2, 1, 7, 140});
    CAPTURE(s.heads, s.kv_heads, s.dim);
    Random random(s.dim);
    const auto q_norm = random(s.dim, 0.5F, 1.5F);
    const auto k_norm = random(s.dim, 0.5F, 1.5F);
    Shape one_chunk = s;
    one_chunk.capacity = attention_chunk;
    Shape many_chunks = s;
    many_chunks.capacity = 20 * attention_chunk + 1;
    Layer smallest(one_chunk, q_norm, k_norm);
    Layer fitting(s, q_norm, k_norm);
    Layer largest(many_chunks, q_norm, k_norm);
    for (unsigned position = 0; position < s.capacity; ++position) {
        CAPTURE(position);
        const Token token = token_for(s, random);
        const std::vector<float> expected = fitting.attend(position, token);
        REQUIRE(same_bits(largest.attend(position, token), expected));
        if (position < one_chunk.capacity) REQUIRE(same_bits(smallest.attend(position, token), expected));
    }
}

TEST_CASE("attention refuses heads that it cannot split", "[gpu]") {
    const OnDevice some(64);
    cuda::AttentionHeads a{};
    a.q = a.keys = a.values = a.scores = a.out = some.get();
    a.q_and_gate = some.get();
    a.heads = 3;
    a.kv_heads = 2;
    a.dim = 4;
    a.capacity = 1;
    const auto control = control_at(0);
    CHECK_THROWS(cuda::launch_attend(a, control.get(), nullptr));
    a.kv_heads = 3;
    a.dim = 4097;
    CHECK_THROWS(cuda::launch_attend(a, control.get(), nullptr));
    a.dim = 4;
    a.keys = some.get() + 1;
    CHECK_THROWS(cuda::launch_attend(a, control.get(), nullptr));
    a.keys = some.get();
    a.capacity = 0;
    CHECK_THROWS(cuda::launch_attend(a, control.get(), nullptr));
}
