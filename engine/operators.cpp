#include "engine/operators.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "engine/error.hpp"
#include "engine/quantise.hpp"
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

void check_count(std::string_view name, std::size_t inputs, std::size_t wanted_inputs, std::size_t outputs, std::size_t wanted_outputs) {
    if (inputs != wanted_inputs || outputs != wanted_outputs) {
        bad_argument(std::string(name) + ": expected " + std::to_string(wanted_inputs) + " inputs and " + std::to_string(wanted_outputs) +
                     " outputs, found " + std::to_string(inputs) + " and " + std::to_string(outputs));
    }
}

void check_no_variant(std::string_view name, std::string_view variant) {
    if (!variant.empty()) fail(KESTREL_UNSUPPORTED, std::string(name) + " has no variant \"" + std::string(variant) + "\"");
}

// Elements of a tensor, whose extents were checked one by one.
std::size_t elements_of(std::string_view name, std::initializer_list<std::uint64_t> shape) {
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : shape) {
        if (__builtin_mul_overflow(elements, extent, &elements) || elements > SIZE_MAX / sizeof(float)) {
            bad_argument(std::string(name) + ": a tensor of shape " + text_of({shape.begin(), shape.size()}) + " fits no memory");
        }
    }
    return elements;
}

void run_gdn_delta(const BackendOperators& operators, std::string_view variant, std::span<const kestrel_tensor> in,
                   std::span<kestrel_tensor> out) {
    check_count("gdn_delta", in.size(), 6, out.size(), 2);
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
    const std::size_t elements = elements_of("gdn_delta", {heads, kd, vd});
    std::memmove(out[0].data, in[0].data, elements * sizeof(float));
    constexpr std::string_view tiled = "tiled";
    const bool is_tiled = variant.ends_with(tiled);
    if (is_tiled) variant.remove_suffix(std::min(variant.size(), tiled.size() + 1));
    operators.gdn_delta({.variant = variant,
                         .order = is_tiled ? HeadOrder::tiled : HeadOrder::grouped,
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
    check_count("f32_gemv2", in.size(), 3, out.size(), 2);
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

TensorType type_named(std::string_view variant) {
    const std::optional<TensorType> type = tensor_type_named(variant);
    if (type) return *type;
    std::string names;
    for (std::size_t i = 0; i < tensor_type_count; ++i) {
        names += (i > 0 ? ", " : "") + std::string(info_of(static_cast<TensorType>(i)).name);
    }
    fail(KESTREL_UNSUPPORTED, "q_gemv has no variant \"" + std::string(variant) + "\"; it is a type: " + names);
}

void run_q_gemv(const BackendOperators& operators, std::string_view variant, std::span<const kestrel_tensor> in,
                std::span<kestrel_tensor> out) {
    check_count("q_gemv", in.size(), 2, out.size(), 1);
    check_rank("A", in[0], 2);
    const std::uint64_t rows = in[0].shape[0];
    const std::uint64_t cols = in[0].shape[1];
    check_shape("x", in[1], {cols});
    check_shape("y", out[0], {rows});
    const TensorType type = type_named(variant);
    if (cols % info_of(type).block_elements != 0) {
        bad_argument("q_gemv: " + std::to_string(cols) + " columns are not whole " + std::string(variant) + " blocks of " +
                     std::to_string(info_of(type).block_elements));
    }
    const std::vector<std::byte> stored = quantise(type, {in[0].data, elements_of("q_gemv", {rows, cols})});
    operators.q_gemv({.a = {stored.data(), type}, .x = in[1].data, .y = out[0].data, .rows = rows, .cols = cols});
}

void run_attention(const BackendOperators& operators, std::string_view variant, std::span<const kestrel_tensor> in,
                   std::span<kestrel_tensor> out) {
    check_count("attention", in.size(), 4, out.size(), 1);
    check_no_variant("attention", variant);
    check_rank("q", in[0], 2);
    check_rank("keys", in[2], 3);
    const std::uint64_t heads = in[0].shape[0];
    const std::uint64_t dim = in[0].shape[1];
    const std::uint64_t positions = in[2].shape[0];
    const std::uint64_t kv_heads = in[2].shape[1];
    check_shape("gate", in[1], {heads, dim});
    check_shape("keys", in[2], {positions, kv_heads, dim});
    check_shape("values", in[3], {positions, kv_heads, dim});
    check_shape("out", out[0], {heads, dim});
    (void)elements_of("attention", {positions, kv_heads, dim});
    if (heads % kv_heads != 0) {
        bad_argument("attention: " + std::to_string(kv_heads) + " key heads do not divide " + std::to_string(heads) + " query heads");
    }
    operators.attention({.q = in[0].data,
                         .gate = in[1].data,
                         .keys = in[2].data,
                         .values = in[3].data,
                         .out = out[0].data,
                         .heads = heads,
                         .kv_heads = kv_heads,
                         .dim = dim,
                         .positions = positions});
}

void run_rms_norm(const BackendOperators& operators, std::string_view variant, std::span<const kestrel_tensor> in,
                  std::span<kestrel_tensor> out) {
    check_count("rms_norm", in.size(), 3, out.size(), 1);
    check_no_variant("rms_norm", variant);
    check_rank("x", in[0], 1);
    const std::uint64_t n = in[0].shape[0];
    check_shape("w", in[1], {n});
    check_shape("eps", in[2], {1});
    check_shape("y", out[0], {n});
    operators.rms_norm({.x = in[0].data, .w = in[1].data, .y = out[0].data, .n = n, .eps = in[2].data[0]});
}

void run_conv_silu(const BackendOperators& operators, std::string_view variant, std::span<const kestrel_tensor> in,
                   std::span<kestrel_tensor> out) {
    check_count("conv_silu", in.size(), 3, out.size(), 2);
    check_no_variant("conv_silu", variant);
    check_rank("w", in[1], 2);
    const std::uint64_t taps = in[1].shape[0];
    const std::uint64_t channels = in[1].shape[1];
    check_shape("state", in[0], {taps - 1, channels});
    check_shape("x", in[2], {channels});
    check_shape("state'", out[0], {taps - 1, channels});
    check_shape("y", out[1], {channels});
    const std::size_t kept = elements_of("conv_silu", {taps, channels}) - channels;
    std::memmove(out[0].data, in[0].data, kept * sizeof(float));
    operators.conv_silu({.state = out[0].data, .w = in[1].data, .x = in[2].data, .y = out[1].data, .channels = channels, .taps = taps});
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
    const NamedOperator all[] = {
        {"gdn_delta", operators.gdn_delta != nullptr, run_gdn_delta}, {"f32_gemv2", operators.f32_gemv_pair != nullptr, run_f32_gemv2},
        {"q_gemv", operators.q_gemv != nullptr, run_q_gemv},          {"attention", operators.attention != nullptr, run_attention},
        {"rms_norm", operators.rms_norm != nullptr, run_rms_norm},    {"conv_silu", operators.conv_silu != nullptr, run_conv_silu}};
    std::string names;
    for (const NamedOperator& one : all) {
        if (!one.present) continue;
        if (one.name == name) return one.run(operators, variant, inputs, outputs);
        names += (names.empty() ? "" : ", ") + std::string(one.name);
    }
    fail(KESTREL_UNSUPPORTED, "no operator \"" + std::string(name) + "\"; this engine has: " + names);
}

}  // namespace kestrel
