// Each mistake that an engine of this family is known to make, put into the truth in the place of one right step. The comparison with the
// expected logits must fail with it, by more than the tolerance, and pass without it: so that a passing check means something.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>

#include "engine/truth/decoder.hpp"
#include "tests/engine/engine_under_test.hpp"
#include "tests/engine/host_model.hpp"

using namespace kestrel;
using truth::Gates;
using truth::In;
using truth::Out;
using truth::Steps;
using truth::Vector;

namespace {

constexpr double tolerance = 1e-4;  // of check model, for shallow models

Vector plus(In w, double added) {
    Vector out(w.begin(), w.end());
    for (double& value : out) value += added;
    return out;
}

template <class Change>
Vector each(In values, const Change& change) {
    Vector out(values.begin(), values.end());
    for (double& value : out) value = change(value);
    return out;
}

// S is square here, so that no shape gives the swap away.
void transpose(Out state, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) std::swap(state[i * n + j], state[j * n + i]);
    }
}

Vector taps_reversed(In w, std::size_t channels) {
    Vector out;
    for (std::size_t t = w.size() / channels; t-- > 0;) {
        const In row = w.subspan(t * channels, channels);
        out.insert(out.end(), row.begin(), row.end());
    }
    return out;
}

// Byte j of a q4_0 block read as elements 2j and 2j + 1 instead of j and j + 16.
void interleave_nibbles(Vector& row) {
    for (std::size_t block = 0; block < row.size(); block += 32) {
        const Vector right(row.begin() + static_cast<std::ptrdiff_t>(block), row.begin() + static_cast<std::ptrdiff_t>(block + 32));
        for (std::size_t j = 0; j < 16; ++j) {
            row[block + 2 * j] = right[j];
            row[block + 2 * j + 1] = right[j + 16];
        }
    }
}

Vector multiply_interleaved(const StoredTensor& matrix, std::size_t rows, In x) {
    Vector y(rows);
    for (std::size_t r = 0; r < rows; ++r) {
        Vector row = truth::row_of(matrix, r, x.size());
        if (matrix.type == TensorType::q4_0) interleave_nibbles(row);
        for (std::size_t c = 0; c < x.size(); ++c) y[r] += row[c] * x[c];
    }
    return y;
}

struct Mistake {
    const char* name;
    void (*plant)(Steps& steps);
};

const Mistake mistakes[] = {
    {"value heads read the key head of the other order",
     [](Steps& s) {
         s.key_head = [](std::size_t h, std::size_t v_heads, std::size_t k_heads, HeadOrder order) {
             return truth::key_head(h, v_heads, k_heads, order == HeadOrder::grouped ? HeadOrder::tiled : HeadOrder::grouped);
         };
     }},
    {"the 1 is not added to zero-centred norms",
     [](Steps& s) { s.rms_norm = [](In x, In w, double eps) { return truth::rms_norm(x, plus(w, -1.0), eps); }; }},
    {"the 1 is added twice", [](Steps& s) { s.rms_norm = [](In x, In w, double eps) { return truth::rms_norm(x, plus(w, 1.0), eps); }; }},
    {"the 1 is added to the gated norm too",
     [](Steps& s) { s.gated_norm = [](In x, In w, In z, double eps) { return truth::gated_norm(x, plus(w, 1.0), z, eps); }; }},
    {"the state is stored transposed",
     [](Steps& s) {
         s.gdn_delta = [](Out state, In q, In k, In v, double decay, double beta) {
             Vector out = truth::gdn_delta(state, q, k, v, decay, beta);
             transpose(state, k.size());
             return out;
         };
     }},
    {"the convolution never drops its oldest sample",
     [](Steps& s) {
         s.conv_silu = [](Out state, In w, In x) {
             const Vector oldest(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(x.size()));
             Vector y = truth::conv_silu(state, w, x);
             std::copy(oldest.begin(), oldest.end(), state.begin());
             return y;
         };
     }},
    {"the convolution's taps are reversed",
     [](Steps& s) { s.conv_silu = [](Out state, In w, In x) { return truth::conv_silu(state, taps_reversed(w, x.size()), x); }; }},
    {"query and gate are split as halves",
     [](Steps& s) {
         s.split_query = [](In rows, std::size_t heads, std::size_t dim) {
             const In q = rows.first(heads * dim);
             const In gate = rows.last(heads * dim);
             return truth::QueryAndGate{{q.begin(), q.end()}, {gate.begin(), gate.end()}};
         };
     }},
    {"the output is read from the old state",
     [](Steps& s) {
         s.gdn_delta = [](Out state, In q, In k, In v, double decay, double beta) {
             Vector old(state.begin(), state.end());
             (void)truth::gdn_delta(state, q, k, v, decay, beta);
             return truth::gdn_delta(old, q, k, v, decay, 0.0);
         };
     }},
    {"the state decays after the update",
     [](Steps& s) {
         s.gdn_delta = [](Out state, In q, In k, In v, double decay, double beta) {
             Vector out = truth::gdn_delta(state, q, k, v, 1.0, beta);
             for (double& value : state) value *= decay;
             return out;
         };
     }},
    {"RoPE turns all dimensions",
     [](Steps& s) {
         s.rotate = [](In head, std::size_t, double theta, std::size_t position) {
             return truth::rotate(head, head.size(), theta, position);
         };
     }},
    {"the decay rate lacks its exp",
     [](Steps& s) {
         s.gates = [](In b, In a, In rate, In dt_bias) {
             return truth::gates(b, a, each(rate, [](double r) { return -std::log(-r); }), dt_bias);
         };
     }},
    {"the decay rate gets its exp twice",
     [](Steps& s) {
         s.gates = [](In b, In a, In rate, In dt_bias) {
             return truth::gates(b, a, each(rate, [](double r) { return -std::exp(r); }), dt_bias);
         };
     }},
    {"alpha and beta are swapped",
     [](Steps& s) { s.gates = [](In b, In a, In rate, In dt_bias) { return truth::gates(a, b, rate, dt_bias); }; }},
};

Vector l2_norm_without_eps(In x) {
    double sum = 0.0;
    for (const double value : x) sum += value * value;
    return each(x, [&](double value) { return value / std::sqrt(sum); });
}

// All positions' logits.
Vector logits_of(const test::HostModel& model, const std::vector<std::int32_t>& tokens, const Steps& steps) {
    Vector all;
    const std::uint64_t bytes = truth::SequenceLayout(model.dims, static_cast<std::uint32_t>(tokens.size())).bytes();
    const MemoryBlock workspace = MemoryBlock::allocate(bytes, "sequence");
    truth::Decoder decoder({.dims = model.dims,
                            .layout = model.layout,
                            .weights = model.block.data(),
                            .workspace = workspace.data(),
                            .threads = 1,
                            .max_positions = static_cast<std::uint32_t>(tokens.size()),
                            .switches = {0}},
                           steps);
    for (const std::int32_t token : tokens) {
        (void)decoder.decode(token);
        all.insert(all.end(), decoder.logits().begin(), decoder.logits().end());
    }
    return all;
}

// As check model does: the largest difference over the largest expected |logit|. What is not finite is infinitely wrong.
double relative(const Vector& found, const Vector& expected) {
    double difference = 0.0;
    double magnitude = 0.0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double one = std::fabs(found[i] - expected[i]);
        if (!(one <= difference)) difference = std::isfinite(one) ? one : INFINITY;
        magnitude = std::max(magnitude, std::fabs(expected[i]));
    }
    return difference / magnitude;
}

struct Fixture {
    Fixture(const std::filesystem::path& path, const std::filesystem::path& file)
        : model(test::load_host_model(path)), tokens(test::read_tensor<std::int32_t>(file, "tokens")) {
        const auto logits = test::read_tensor<float>(file, "logits");
        expected.assign(logits.begin(), logits.end());
    }
    explicit Fixture(const std::string& name) : Fixture(test::checkpoint(name), test::checkpoint(name) / "expected.safetensors") {}
    test::HostModel model;
    std::vector<std::int32_t> tokens;
    Vector expected;
};

// A GGUF file: value heads in the tiled order, and q4_0 matrices if its name says so.
Fixture gguf_fixture(const std::string& name) {
    const std::filesystem::path folder = test::checkpoint("f32-4l").parent_path().parent_path() / "gguf";
    return {folder / (name + ".gguf"), folder / (name + ".expected.safetensors")};
}

}  // namespace

// The expectations are another implementation's in f32, so what is left is its rounding: tests/data/README.md gives the figures.
TEST_CASE("the truth agrees with the expected logits as far as those are exact", "[engine][truth]") {
    const auto [name, allowed] = GENERATE(table<std::string, double>({{"f32-4l", 3e-6}, {"bf16-4l-k128", 3e-6}, {"bf16-64l", 1e-4}}));
    const Fixture fixture(name);
    CAPTURE(name);
    CHECK(relative(logits_of(fixture.model, fixture.tokens, {}), fixture.expected) <= allowed);
}

TEST_CASE("every planted mistake fails the comparison with the expected logits", "[engine][truth]") {
    const bool gguf = GENERATE(false, true);
    const Fixture fixture = gguf ? gguf_fixture("f32-4l.q4_0-head-q8_0") : Fixture("f32-4l");
    CAPTURE(gguf);
    REQUIRE(relative(logits_of(fixture.model, fixture.tokens, {}), fixture.expected) <= 3e-6);
    for (const Mistake& mistake : mistakes) {
        Steps steps;
        mistake.plant(steps);
        const double off = relative(logits_of(fixture.model, fixture.tokens, steps), fixture.expected);
        INFO(mistake.name << ": " << off << " of max |logit|");
        CHECK(off > tolerance);
    }
}

TEST_CASE("nibbles in the wrong order fail the comparison of a q4_0 model", "[engine][truth]") {
    const Fixture fixture = gguf_fixture("f32-4l.q4_0-head-q8_0");
    Steps steps;
    steps.multiply = multiply_interleaved;
    const double off = relative(logits_of(fixture.model, fixture.tokens, steps), fixture.expected);
    INFO(off << " of max |logit|");
    CHECK(off > tolerance);
}

// Keys of ordinary length hide the 1e-6: it takes keys and queries whose squared length comes near it, as with these weights scaled
// by 1/1000.
TEST_CASE("a missing eps of the l2 norm shows where keys are short, and only there", "[engine][truth]") {
    Fixture fixture("f32-4l");
    Steps without;
    without.l2_norm = l2_norm_without_eps;
    CHECK(relative(logits_of(fixture.model, fixture.tokens, without), fixture.expected) < tolerance);
    test::scale_query_and_key(fixture.model, 1e-3F);
    const Vector expected = logits_of(fixture.model, fixture.tokens, {});
    const double off = relative(logits_of(fixture.model, fixture.tokens, without), expected);
    INFO(off << " of max |logit|");
    CHECK(off > tolerance);
}
