#include "engine/operators.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/cpu/ops.hpp"
#include "engine/error.hpp"
#include "engine/text.hpp"

namespace kestrel {
namespace {

constexpr std::uint64_t largest_extent = std::uint64_t{1} << 24;

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

struct GdnForm {
    cpu::GdnVariant variant;
    HeadOrder order;
};

GdnForm gdn_form(std::string_view variant) {
    if (variant.empty() || variant == "reg") return {cpu::GdnVariant::reg, HeadOrder::grouped};
    if (variant == "ref") return {cpu::GdnVariant::ref, HeadOrder::grouped};
    if (variant == "reg-tiled") return {cpu::GdnVariant::reg, HeadOrder::tiled};
    if (variant == "ref-tiled") return {cpu::GdnVariant::ref, HeadOrder::tiled};
    fail(KESTREL_UNSUPPORTED,
         "gdn_delta has no variant \"" + std::string(variant) + "\"; it has reg (default), ref, reg-tiled and ref-tiled");
}

void run_gdn_delta(std::string_view variant, std::span<const kestrel_tensor> in, std::span<kestrel_tensor> out) {
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
    const GdnForm form = gdn_form(variant);
    std::vector<float> alpha(heads);
    for (std::size_t h = 0; h < heads; ++h) alpha[h] = static_cast<float>(std::exp(static_cast<double>(in[4].data[h])));
    std::memmove(out[0].data, in[0].data, elements * sizeof(float));
    cpu::ThreadPool pool(1);
    cpu::gdn_delta(pool, cpu::kernels(), form.variant,
                   {.state = out[0].data,
                    .q = in[1].data,
                    .k = in[2].data,
                    .v = in[3].data,
                    .alpha = alpha.data(),
                    .beta = in[5].data,
                    .out = out[1].data,
                    .heads = heads,
                    .k_heads = k_heads,
                    .kd = kd,
                    .vd = vd,
                    .order = form.order});
}

void run_f32_gemv2(std::string_view variant, std::span<const kestrel_tensor> in, std::span<kestrel_tensor> out) {
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
    cpu::ThreadPool pool(1);
    cpu::f32_gemv_pair(pool, cpu::kernels(), in[0].data, in[1].data, in[2].data, rows, cols, out[0].data, out[1].data);
}

}  // namespace

void run_operator(std::string_view name, std::string_view variant, std::span<const kestrel_tensor> inputs,
                  std::span<kestrel_tensor> outputs) {
    if (name == "gdn_delta") {
        run_gdn_delta(variant, inputs, outputs);
    } else if (name == "f32_gemv2") {
        run_f32_gemv2(variant, inputs, outputs);
    } else {
        fail(KESTREL_UNSUPPORTED, "no operator \"" + std::string(name) + "\"; this engine has gdn_delta and f32_gemv2");
    }
}

}  // namespace kestrel
