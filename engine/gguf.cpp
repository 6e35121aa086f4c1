#include "engine/gguf.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "engine/error.hpp"
#include "engine/ggml_types.hpp"
#include "engine/text.hpp"

namespace kestrel {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they lie in the file");

constexpr std::uint64_t longest_name = 65535;  // the format's limit on keys
constexpr std::uint32_t most_dimensions = 4;
constexpr int deepest_array = 8;
// The smallest possible entries: an empty name and a one-byte value; an empty name, one dimension, type and offset.
constexpr std::uint64_t smallest_value = 8 + 4 + 1;
constexpr std::uint64_t smallest_tensor = 8 + 4 + 8 + 4 + 8;
constexpr std::uint32_t usual_alignment = 32;
// No file is that large, and its bytes do not overflow.
constexpr std::uint64_t most_elements = std::uint64_t{1} << 56U;

// Bytes of one value; 0 for strings and arrays.
std::uint64_t size_of(GgufType type) {
    switch (type) {
        case GgufType::u8:
        case GgufType::i8:
        case GgufType::boolean:
            return 1;
        case GgufType::u16:
        case GgufType::i16:
            return 2;
        case GgufType::u32:
        case GgufType::i32:
        case GgufType::f32:
            return 4;
        case GgufType::u64:
        case GgufType::i64:
        case GgufType::f64:
            return 8;
        default:
            return 0;
    }
}

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// Walks through the header; every step is checked against the bytes that remain.
class Cursor {
  public:
    Cursor(const std::string& file, std::span<const std::byte> bytes) : file_(file), bytes_(bytes) {}

    [[nodiscard]] const std::string& file() const { return file_; }
    [[nodiscard]] std::uint64_t at() const { return at_; }
    [[nodiscard]] std::uint64_t left() const { return bytes_.size() - at_; }

    std::span<const std::byte> take(std::uint64_t count, const std::string& what) {
        if (count > left()) {
            bad_model(file_ + ": " + what + " at byte " + std::to_string(at_) + " takes " + std::to_string(count) + " bytes, " +
                      std::to_string(left()) + " are left; the file is truncated or damaged");
        }
        at_ += count;
        return bytes_.subspan(at_ - count, count);
    }
    template <class T>
    T number(const std::string& what) {
        return load<T>(take(sizeof(T), what).data());
    }
    std::string name(const std::string& what) {
        const auto length = number<std::uint64_t>("the length of " + what);
        if (length > longest_name) {
            bad_model(file_ + ": " + what + " at byte " + std::to_string(at_) + " is " + std::to_string(length) + " bytes long, at most " +
                      std::to_string(longest_name) + " are allowed; the file is damaged");
        }
        const auto text = take(length, what);
        return {reinterpret_cast<const char*>(text.data()), text.size()};
    }
    // A number of entries of at least `smallest` bytes each.
    std::uint64_t entries(std::uint64_t smallest, const std::string& what) {
        const auto count = number<std::uint64_t>(what);
        if (count > left() / smallest) {
            bad_model(file_ + ": " + what + " is " + std::to_string(count) + ", more than the " + std::to_string(left()) +
                      " bytes left can hold; the file is truncated or damaged");
        }
        return count;
    }
    GgufType type(const std::string& what) {
        const auto number_of_type = number<std::uint32_t>("the type of " + what);
        if (number_of_type > static_cast<std::uint32_t>(GgufType::f64)) {
            bad_model(file_ + ": " + what + " has the unknown value type " + std::to_string(number_of_type));
        }
        return static_cast<GgufType>(number_of_type);
    }
    GgufValue value(GgufType type, const std::string& what) {
        if (type == GgufType::array) return array(what, 1);
        const std::uint64_t size = type == GgufType::string ? number<std::uint64_t>("the length of " + what) : size_of(type);
        return {type, false, 1, take(size, what)};
    }

  private:
    GgufValue array(const std::string& what, int depth) {
        if (depth > deepest_array) bad_model(file_ + ": " + what + " has arrays in arrays, deeper than " + std::to_string(deepest_array));
        const GgufType element = type(what);
        const bool fixed = size_of(element) != 0;
        const std::uint64_t smallest = fixed ? size_of(element) : element == GgufType::string ? 8 : 12;
        const std::uint64_t count = entries(smallest, "the number of elements of " + what);
        const std::uint64_t begin = at_;
        if (fixed) {
            take(count * smallest, what);
        } else if (element == GgufType::string) {
            for (std::uint64_t i = 0; i < count; ++i) take(number<std::uint64_t>("the length of a string of " + what), what);
        } else {
            for (std::uint64_t i = 0; i < count; ++i) array(what, depth + 1);
        }
        return {element, true, count, bytes_.subspan(begin, at_ - begin)};
    }

    const std::string& file_;
    std::span<const std::byte> bytes_;
    std::uint64_t at_ = 0;
};

GgufMap read_values(Cursor& cursor, std::uint64_t count) {
    GgufMap values;
    for (std::uint64_t i = 0; i < count; ++i) {
        std::string key = cursor.name("the name of key " + std::to_string(i));
        const std::string what = "key " + in_quotes(key);
        const GgufType type = cursor.type(what);
        const GgufValue value = cursor.value(type, what);
        if (!values.emplace(std::move(key), value).second) bad_model(cursor.file() + ": " + what + " is given twice");
    }
    return values;
}

struct Entry {
    std::string name;
    FileTensor tensor;
    std::uint64_t offset = 0;  // in the data, which starts after the table
    std::uint64_t size = 0;
};

Entry read_entry(Cursor& cursor, std::uint64_t index) {
    Entry entry;
    entry.name = cursor.name("the name of tensor " + std::to_string(index));
    const std::string what = "tensor " + in_quotes(entry.name);
    FileTensor& tensor = entry.tensor;
    tensor.where = cursor.file() + ": " + what;
    const auto dimensions = cursor.number<std::uint32_t>("the rank of " + what);
    if (dimensions < 1 || dimensions > most_dimensions) {
        bad_model(tensor.where + ": rank " + std::to_string(dimensions) + ", allowed are 1 to " + std::to_string(most_dimensions));
    }
    for (std::uint32_t d = 0; d < dimensions; ++d) tensor.shape.push_back(cursor.number<std::uint64_t>("the shape of " + what));
    std::reverse(tensor.shape.begin(), tensor.shape.end());  // the file gives the fastest first
    const auto number = cursor.number<std::uint32_t>("the type of " + what);
    const GgmlType* type = ggml_type(number);
    if (type == nullptr) bad_model(tensor.where + ": unknown ggml type " + std::to_string(number) + "; the file is damaged or too new");
    tensor.type_name = type->name;
    tensor.type = type->ours;
    std::uint64_t elements = 1;
    bool absurd = false;
    for (const std::uint64_t extent : tensor.shape) absurd = __builtin_mul_overflow(elements, extent, &elements) || absurd;
    if (absurd || elements == 0 || elements > most_elements) {
        bad_model(tensor.where + ": shape " + text_of(tensor.shape) + " is empty or absurdly large");
    }
    if (tensor.shape.back() % type->block_elements != 0) {
        bad_model(tensor.where + ": rows of " + std::to_string(tensor.shape.back()) + " elements are not whole " + tensor.type_name +
                  " blocks of " + std::to_string(type->block_elements));
    }
    entry.size = elements / type->block_elements * type->block_bytes;
    entry.offset = cursor.number<std::uint64_t>("the offset of " + what);
    return entry;
}

TensorTable read_tensors(Cursor& cursor, std::uint64_t count, std::uint64_t alignment) {
    std::vector<Entry> entries;
    for (std::uint64_t i = 0; i < count; ++i) entries.push_back(read_entry(cursor, i));
    // The data starts at the next multiple of the alignment; a file without tensors may end before it.
    const std::uint64_t padding = (alignment - cursor.at() % alignment) % alignment;
    cursor.take(std::min(padding, cursor.left()), "padding");
    const auto data = cursor.take(cursor.left(), "the data");
    TensorTable table;
    for (Entry& entry : entries) {
        FileTensor& tensor = entry.tensor;
        if (entry.offset % alignment != 0) {
            bad_model(tensor.where + ": offset " + std::to_string(entry.offset) + " is not a multiple of the alignment " +
                      std::to_string(alignment));
        }
        if (entry.offset > data.size() || entry.size > data.size() - entry.offset) {
            bad_model(tensor.where + ": needs " + std::to_string(entry.size) + " bytes from offset " + std::to_string(entry.offset) +
                      ", the file has " + std::to_string(data.size()) + " data bytes; it is truncated or damaged");
        }
        tensor.bytes = data.subspan(entry.offset, entry.size);
        const std::string where = tensor.where;
        if (!table.emplace(std::move(entry.name), std::move(tensor)).second) bad_model(where + " is in the table twice");
    }
    return table;
}

}  // namespace

GgufHeader::GgufHeader(std::string file, std::span<const std::byte> bytes) : file_(std::move(file)) {
    Cursor cursor(file_, bytes);
    const auto magic = cursor.take(4, "the magic \"GGUF\"");
    if (std::memcmp(magic.data(), "GGUF", 4) != 0) bad_model(file_ + ": does not start with \"GGUF\"; it is not a GGUF file");
    const auto version = cursor.number<std::uint32_t>("the version");
    if (version != 0 && (version & 0xFFFFU) == 0) {
        fail(KESTREL_UNSUPPORTED, file_ + ": is a big-endian GGUF file; this engine reads little-endian ones");
    }
    if (version != 2 && version != 3) {
        fail(KESTREL_UNSUPPORTED, file_ + ": GGUF version " + std::to_string(version) + "; this engine reads versions 2 and 3");
    }
    const std::uint64_t tensor_count = cursor.entries(smallest_tensor, "the number of tensors");
    const std::uint64_t value_count = cursor.entries(smallest_value, "the number of keys");
    values_ = read_values(cursor, value_count);
    const std::uint32_t alignment = count("general.alignment").value_or(usual_alignment);
    if (!std::has_single_bit(alignment)) {
        bad_model(file_ + ": key \"general.alignment\": expected a power of two, found " + std::to_string(alignment));
    }
    tensors_ = read_tensors(cursor, tensor_count, alignment);
    check_overlap(tensors_);
}

}  // namespace kestrel
