#include "engine/safetensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/error.hpp"

namespace kestrel {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors values are read as they lie in the file");

constexpr std::uint64_t largest_header = std::uint64_t{100} << 20;  // the format's own limit

std::uint64_t bytes_of(std::string_view dtype) {
    static constexpr std::pair<std::string_view, std::uint64_t> sizes[] = {
        {"F64", 8}, {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4},  {"U32", 4},     {"F16", 2},     {"BF16", 2},
        {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
    };
    for (const auto& [name, bytes] : sizes) {
        if (name == dtype) return bytes;
    }
    return 0;
}

std::string text_of(std::span<const std::uint64_t> shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (i > 0) text += ',';
        text += std::to_string(shape[i]);
    }
    text += ']';
    return text;
}

float from_bf16(std::uint16_t bits) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

float from_f16(std::uint16_t bits) {
    const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
    const std::uint32_t exponent = (bits >> 10) & 31U;
    const std::uint32_t fraction = bits & 1023U;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
}

template <class Convert>
void widen(std::span<const std::byte> from, std::span<float> out, const Convert& convert) {
    for (std::size_t i = 0; i < out.size(); ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, from.data() + 2 * i, 2);  // tensors need not be aligned
        out[i] = convert(bits);
    }
}

std::uint64_t unsigned_or_fail(const json& value, const std::string& where) {
    if (!value.is_number_unsigned()) bad_model(where + ": expected a whole number, found " + value.type_name());
    return value.get<std::uint64_t>();
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) bad_model(path.string() + ": cannot be opened (" + std::strerror(errno) + ")");
    struct stat info {};
    const bool known = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if (known && info.st_size > 0) {
        size_ = static_cast<std::size_t>(info.st_size);
        void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED) data_ = static_cast<const std::byte*>(at);
    }
    ::close(fd);
    if (data_ == nullptr) bad_model(path.string() + ": is empty, not a regular file, or cannot be mapped");
}

MappedFile::MappedFile(MappedFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Safetensors::Safetensors(const std::filesystem::path& path) : name_(path.string()), file_(path) {
    const auto bytes = file_.bytes();
    std::uint64_t header = 0;
    if (bytes.size() < sizeof header) {
        bad_model(name_ + ": " + std::to_string(bytes.size()) + " bytes, too short for the header's length");
    }
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::uint64_t left = bytes.size() - sizeof header;
    if (header > largest_header || header > left) {
        bad_model(name_ + ": header of " + std::to_string(header) + " bytes announced, " + std::to_string(left) +
                  " are in the file; it is truncated or not a safetensors file");
    }
    data_ = bytes.subspan(sizeof header + header);
    read_table({reinterpret_cast<const char*>(bytes.data()) + sizeof header, header});
    check_overlap();
}

void Safetensors::read_table(std::string_view text) {
    json table;
    try {
        table = json::parse(text);
    } catch (const json::exception& problem) {
        bad_model(name_ + ": header is not valid JSON: " + problem.what());
    }
    if (!table.is_object()) bad_model(name_ + ": header: expected an object, found " + table.type_name());
    for (const auto& [name, value] : table.items()) {
        if (name == "__metadata__") continue;
        const std::string where = name_ + ": tensor \"" + name + "\"";
        if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() || !value.contains("shape") ||
            !value["shape"].is_array() || !value.contains("data_offsets") || !value["data_offsets"].is_array() ||
            value["data_offsets"].size() != 2) {
            bad_model(where + ": expected dtype, shape and two data_offsets");
        }
        Entry entry;
        entry.dtype = value["dtype"].get<std::string>();
        entry.begin = unsigned_or_fail(value["data_offsets"][0], where + ": data_offsets");
        entry.end = unsigned_or_fail(value["data_offsets"][1], where + ": data_offsets");
        std::uint64_t wanted = bytes_of(entry.dtype);
        if (wanted == 0) bad_model(where + ": unknown dtype \"" + entry.dtype + "\"");
        for (const json& extent : value["shape"]) {
            entry.shape.push_back(unsigned_or_fail(extent, where + ": shape"));
            if (__builtin_mul_overflow(wanted, entry.shape.back(), &wanted)) bad_model(where + ": shape is absurdly large");
        }
        if (entry.begin > entry.end || entry.end > data_.size()) {
            bad_model(where + ": data_offsets [" + std::to_string(entry.begin) + "," + std::to_string(entry.end) +
                      "] lie outside the file's " + std::to_string(data_.size()) + " data bytes; it is truncated or damaged");
        }
        if (entry.end - entry.begin != wanted) {
            bad_model(where + ": " + entry.dtype + text_of(entry.shape) + " expected " + std::to_string(wanted) + " bytes, found " +
                      std::to_string(entry.end - entry.begin));
        }
        tensors_.emplace(name, std::move(entry));
    }
}

void Safetensors::check_overlap() const {
    std::vector<std::pair<const std::string*, const Entry*>> order;
    for (const auto& [name, entry] : tensors_) {
        if (entry.begin != entry.end) order.emplace_back(&name, &entry);
    }
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second->begin < b.second->begin; });
    for (std::size_t i = 1; i < order.size(); ++i) {
        if (order[i].second->begin < order[i - 1].second->end) {
            bad_model(name_ + ": tensors \"" + *order[i - 1].first + "\" and \"" + *order[i].first + "\" overlap");
        }
    }
}

const Safetensors::Entry& Safetensors::checked(const std::string& name, std::span<const std::uint64_t> shape) const {
    const std::string where = name_ + ": tensor \"" + name + "\"";
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) bad_model(where + " is missing; expected shape " + text_of(shape));
    const Entry& entry = found->second;
    if (!std::equal(shape.begin(), shape.end(), entry.shape.begin(), entry.shape.end())) {
        bad_model(where + ": expected shape " + text_of(shape) + ", found " + text_of(entry.shape));
    }
    if (entry.dtype != "F32" && entry.dtype != "BF16" && entry.dtype != "F16") {
        bad_model(where + ": expected dtype F32, BF16 or F16, found " + entry.dtype);
    }
    return entry;
}

void Safetensors::check(const std::string& name, std::span<const std::uint64_t> shape) const {
    (void)checked(name, shape);
}

void Safetensors::read(const std::string& name, std::span<const std::uint64_t> shape, std::span<float> out) const {
    const Entry& entry = checked(name, shape);
    const auto from = data_.subspan(entry.begin, entry.end - entry.begin);
    if (entry.dtype == "F32") {
        std::memcpy(out.data(), from.data(), from.size());
    } else if (entry.dtype == "BF16") {
        widen(from, out, from_bf16);
    } else {
        widen(from, out, from_f16);
    }
}

}  // namespace kestrel
