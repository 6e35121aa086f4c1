#include "engine/safetensors.hpp"

#include <bit>
#include <cstring>
#include <string_view>

#include "engine/error.hpp"
#include "engine/json_file.hpp"
#include "engine/text.hpp"

namespace kestrel {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors values are read as they lie in the file");

constexpr std::uint64_t largest_header = std::uint64_t{100} << 20;  // the format's own limit

struct Dtype {
    std::string_view name;
    std::uint64_t bytes;
    std::optional<TensorType> ours;
};

const Dtype* dtype_named(std::string_view name) {
    static constexpr Dtype all[] = {
        {"F32", 4, TensorType::f32},
        {"F16", 2, TensorType::f16},
        {"BF16", 2, TensorType::bf16},
        {"F64", 8, {}},
        {"I64", 8, {}},
        {"U64", 8, {}},
        {"I32", 4, {}},
        {"U32", 4, {}},
        {"I16", 2, {}},
        {"U16", 2, {}},
        {"I8", 1, {}},
        {"U8", 1, {}},
        {"BOOL", 1, {}},
        {"F8_E4M3", 1, {}},
        {"F8_E5M2", 1, {}},
    };
    for (const Dtype& one : all) {
        if (one.name == name) return &one;
    }
    return nullptr;
}

std::uint64_t whole_number(const json& value, const std::string& what) {
    if (!value.is_number_unsigned()) bad_model(what + ": expected whole numbers");
    return value.get<std::uint64_t>();
}

FileTensor read_entry(const std::string& where, const json& value, std::span<const std::byte> data) {
    const auto is = [&](const char* key, bool (json::*kind)() const noexcept) { return value.contains(key) && (value[key].*kind)(); };
    if (!value.is_object() || !is("dtype", &json::is_string) || !is("shape", &json::is_array) || !is("data_offsets", &json::is_array) ||
        value["data_offsets"].size() != 2) {
        bad_model(where + ": expected dtype, shape and two data_offsets");
    }
    FileTensor tensor;
    tensor.where = where;
    tensor.type_name = value["dtype"].get<std::string>();
    const Dtype* dtype = dtype_named(tensor.type_name);
    if (dtype == nullptr) bad_model(where + ": unknown dtype " + in_quotes(tensor.type_name));
    tensor.type = dtype->ours;
    std::uint64_t wanted = dtype->bytes;
    for (const json& extent : value["shape"]) {
        tensor.shape.push_back(whole_number(extent, where + ": shape"));
        if (__builtin_mul_overflow(wanted, tensor.shape.back(), &wanted)) bad_model(where + ": shape is absurdly large");
    }
    const std::uint64_t begin = whole_number(value["data_offsets"][0], where + ": data_offsets");
    const std::uint64_t end = whole_number(value["data_offsets"][1], where + ": data_offsets");
    if (begin > end || end > data.size()) {
        bad_model(where + ": data_offsets [" + std::to_string(begin) + "," + std::to_string(end) + "] lie outside the file's " +
                  std::to_string(data.size()) + " data bytes; it is truncated or damaged");
    }
    if (end - begin != wanted) {
        bad_model(where + ": " + tensor.type_name + text_of(tensor.shape) + " expected " + std::to_string(wanted) + " bytes, found " +
                  std::to_string(end - begin));
    }
    tensor.bytes = data.subspan(begin, end - begin);
    return tensor;
}

}  // namespace

TensorTable read_safetensors(const std::string& file, std::span<const std::byte> bytes) {
    std::uint64_t header = 0;
    if (bytes.size() < sizeof header) {
        bad_model(file + ": " + std::to_string(bytes.size()) + " bytes, too short for the header's length");
    }
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::uint64_t left = bytes.size() - sizeof header;
    if (header > largest_header || header > left) {
        bad_model(file + ": header of " + std::to_string(header) + " bytes announced, " + std::to_string(left) +
                  " are in the file; it is truncated or not a safetensors file");
    }
    const json entries = parse_json({reinterpret_cast<const char*>(bytes.data()) + sizeof header, header}, file + ": header");
    TensorTable table;
    for (const auto& [name, value] : entries.items()) {
        if (name == "__metadata__") continue;
        table.emplace(name, read_entry(file + ": tensor " + in_quotes(name), value, bytes.subspan(sizeof header + header)));
    }
    check_overlap(table);
    return table;
}

}  // namespace kestrel
