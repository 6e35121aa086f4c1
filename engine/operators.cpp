#include "engine/operators.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/error.hpp"

namespace kestrel {
namespace {

constexpr std::uint64_t largest_extent = std::uint64_t{1} << 24;

std::string text_of(std::span<const std::uint64_t> shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (i > 0) text += ',';
        text += std::to_string(shape[i]);
    }
    text += ']';
    return text;
}

// Rank first, so that the shapes of others can be derived from it.
void check_rank(const char* name, const kestrel_tensor& tensor, std::uint32_t rank) {
    if (tensor.data == nullptr) bad_argument(std::string("tensor ") + name + " is null");
    if (tensor.rank != rank) {
        bad_argument(std::string("tensor ") + name + ": expected rank " + std::to_string(rank) + ", found " + std::to_string(tensor.rank));
    }
    for (std::uint32_t i = 0; i < rank; ++i) {
        if (tensor.shape[i] < 1 || tensor.shape[i] > largest_extent) {
            bad_argument(std::string("tensor ") + name + ": extent " + std::to_string(tensor.shape[i]) + " is not from 1 to " +
                         std::to_string(largest_extent));
        }
    }
}

void check_shape(const char* name, const kestrel_tensor& tensor, std::initializer_list<std::uint64_t> shape) {
    check_rank(name, tensor, static_cast<std::uint32_t>(shape.size()));
    if (!std::equal(shape.begin(), shape.end(), tensor.shape)) {
        bad_argument(std::string("tensor ") + name + ": expected shape " + text_of({shape.begin(), shape.size()}) + ", found " +
                     text_of({tensor.shape, shape.size()}));
    }
}

void check_count(std::string_view name, std::size_t inputs, std::size_t wanted_inputs, std::size_t outputs) {
    if (inputs != wanted_inputs || outputs != 2) {
        bad_argument(std::string(name) + ": expected " + std::to_string(wanted_inputs) + " inputs and 2 outputs, found " +
                     std::to_string(inputs) + " and " + std::to_string(outputs));
    }
}

void run_gdn_delta(const BackendOperators& operators, std::string_view variant, std::span<const kestrel_tensor> in,
                   std::span<kestrel_tensor> out) {
    check_count("gdn_delta", in.size(), 6, out.size());
    check_rank("S", in[0], 3);
    check_rank("q", in[1], 2);
    const std::uint64_t heads = in[0].shape[0];
    const std::uint64_t kd = in[0].shape[1];
    const std::uint64_t vd = in[0].shape[2];
    const std::uint64_t k_heads = in[1].shape[0];
    check_shape("q", in[1], {k_heads, kd});
    check_shape("k", in[2], {k_heads, kd});
    check_shape("v", in[3], {heads, vd});
    check_shape("g", in[4], {heads});
    check_shape("beta", in[5], {heads});
    check_shape("S'", out[0], {heads, kd, vd});
    check_shape("o", out[1], {heads, vd});
    std::uint64_t elements = 0;
    if (__builtin_mul_overflow(heads * kd, vd, &elements) || elements > SIZE_MAX / sizeof(float)) {
        bad_argument("gdn_delta: the state is absurdly large");
    }
    std::memmove(out[0].data, in[0].data, elements * sizeof(float));
    operators.gdn_delta({.variant = variant,
                         .q = in[1].data,
                         .k = in[2].data,
                         .v = in[3].data,
                         .g = in[4].data,
                         .beta = in[5].data,
                         .state = out[0].data,
                         .out = out[1].data,
                         .heads = heads,
                         .k_heads = k_heads,
                         .kd = kd,
                         .vd = vd});
}

void run_f32_gemv2(const BackendOperators& operators, std::string_view variant, std::span<const kestrel_tensor> in,
                   std::span<kestrel_tensor> out) {
    check_count("f32_gemv2", in.size(), 3, out.size());
    if (!variant.empty()) {
        fail(KESTREL_UNSUPPORTED, "f32_gemv2 has no variant \"" + std::string(variant) + "\": the form is chosen when the engine is built");
    }
    check_rank("A", in[0], 2);
    const std::uint64_t rows = in[0].shape[0];
    const std::uint64_t cols = in[0].shape[1];
    check_shape("B", in[1], {rows, cols});
    check_shape("x", in[2], {cols});
    check_shape("ya", out[0], {rows});
    check_shape("yb", out[1], {rows});
    operators.f32_gemv_pair(
        {.a = in[0].data, .b = in[1].data, .x = in[2].data, .ya = out[0].data, .yb = out[1].data, .rows = rows, .cols = cols});
}

struct NamedOperator {
    std::string_view name;
    bool present;
    void (*run)(const BackendOperators& operators, std::string_view variant, std::span<const kestrel_tensor> in,
                std::span<kestrel_tensor> out);
};

}  // namespace

void run_operator(const BackendOperators& operators, std::string_view name, std::string_view variant,
                  std::span<const kestrel_tensor> inputs, std::span<kestrel_tensor> outputs) {
    const NamedOperator all[] = {{"gdn_delta", operators.gdn_delta != nullptr, run_gdn_delta},
                                 {"f32_gemv2", operators.f32_gemv_pair != nullptr, run_f32_gemv2}};
    std::string names;
    for (const NamedOperator& one : all) {
        if (!one.present) continue;
        if (one.name == name) return one.run(operators, variant, inputs, outputs);
        names += (names.empty() ? "" : ", ") + std::string(one.name);
    }
    fail(KESTREL_UNSUPPORTED, "no operator \"" + std::string(name) + "\"; this engine has: " + names);
}

}  // namespace kestrel
