// What the keys of a GGUF header say.
#include <cstring>
#include <limits>

#include "engine/error.hpp"
#include "engine/gguf.hpp"
#include "engine/text.hpp"

namespace kestrel {
namespace {

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// Nothing if the type is not an integer's or the number is negative.
std::optional<std::uint64_t> whole_number(GgufType type, const std::byte* at) {
    const auto if_positive = [](std::int64_t value) { return value < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(value)); };
    switch (type) {
        case GgufType::u8:
            return load<std::uint8_t>(at);
        case GgufType::u16:
            return load<std::uint16_t>(at);
        case GgufType::u32:
            return load<std::uint32_t>(at);
        case GgufType::u64:
            return load<std::uint64_t>(at);
        case GgufType::i8:
            return if_positive(load<std::int8_t>(at));
        case GgufType::i16:
            return if_positive(load<std::int16_t>(at));
        case GgufType::i32:
            return if_positive(load<std::int32_t>(at));
        case GgufType::i64:
            return if_positive(load<std::int64_t>(at));
        default:
            return std::nullopt;
    }
}

}  // namespace

void GgufHeader::wrong(const std::string& key, const std::string& expected) const {
    bad_model(file_ + ": key " + in_quotes(key) + ": expected " + expected);
}

const GgufValue* GgufHeader::find(const std::string& key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? nullptr : &at->second;
}

std::uint32_t GgufHeader::count_at(const std::string& key, const GgufValue& value, std::uint64_t index) const {
    const std::uint64_t width = value.count == 0 ? 0 : value.bytes.size() / value.count;
    const std::optional<std::uint64_t> found =
        value.type == GgufType::array ? std::nullopt : whole_number(value.type, value.bytes.data() + index * width);
    if (!found || *found > std::numeric_limits<std::uint32_t>::max()) {
        wrong(key, "a whole number from 0 to 4294967295, found " + (found ? std::to_string(*found) : "another type or a negative number"));
    }
    return static_cast<std::uint32_t>(*found);
}

std::optional<std::uint32_t> GgufHeader::count(const std::string& key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_array) wrong(key, "a single number, found an array");
    return count_at(key, *value, 0);
}

std::optional<std::vector<std::uint32_t>> GgufHeader::counts(const std::string& key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    std::vector<std::uint32_t> all;
    for (std::uint64_t i = 0; i < value->count; ++i) all.push_back(count_at(key, *value, i));
    return all;
}

std::optional<std::vector<bool>> GgufHeader::flags(const std::string& key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array || value->type != GgufType::boolean) wrong(key, "an array of true and false");
    std::vector<bool> all;
    for (const std::byte one : value->bytes) {
        if (std::to_integer<unsigned>(one) > 1)
            wrong(key, "true (1) or false (0), found " + std::to_string(std::to_integer<unsigned>(one)));
        all.push_back(one != std::byte{0});
    }
    return all;
}

std::optional<double> GgufHeader::number(const std::string& key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array && value->type == GgufType::f32) return double{load<float>(value->bytes.data())};
    if (!value->is_array && value->type == GgufType::f64) return load<double>(value->bytes.data());
    wrong(key, "a floating-point number");
}

std::optional<std::string> GgufHeader::text(const std::string& key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_array || value->type != GgufType::string) wrong(key, "a string");
    return std::string(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

}  // namespace kestrel
