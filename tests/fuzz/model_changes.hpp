// Changes to the small valid model of tests/engine/tiny_files.hpp, drawn from the bytes of a fuzz input: six bytes each, whatever they are.
// What a table means is changed as often as how it is written, so that many inputs pass the readers and reach what comes after them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "tests/engine/tiny_files.hpp"

namespace kestrel::fuzz {

struct Change {
    std::uint8_t kind;
    std::uint8_t which;
    std::uint16_t at;
    std::uint16_t value;
};

inline constexpr std::size_t most_changes = 64;
inline constexpr std::size_t most_data = std::size_t{1} << 18;  // of one tensor
inline constexpr std::uint8_t entry_kinds = 10;                 // changes of a table's entries
inline constexpr std::uint8_t key_kinds = 2;                    // then of the configuration
inline constexpr std::uint8_t byte_kinds = 4;                   // then of the written bytes

inline std::vector<Change> read_changes(std::span<const std::uint8_t> input) {
    std::vector<Change> changes;
    for (; input.size() >= 6 && changes.size() < most_changes; input = input.subspan(6)) {
        Change one{static_cast<std::uint8_t>(input[0] % (entry_kinds + key_kinds + byte_kinds)), input[1], 0, 0};
        std::memcpy(&one.at, &input[2], sizeof one.at);
        std::memcpy(&one.value, &input[4], sizeof one.value);
        changes.push_back(one);
    }
    return changes;
}

// Small numbers as they are; the last sixteen stand for those at which lengths and counts tip over.
inline std::uint64_t number_of(std::uint16_t value) {
    static constexpr std::uint64_t edges[] = {0x7FFFFFFF,
                                              0x80000000,
                                              0xFFFFFFFF,
                                              0x100000000,
                                              std::uint64_t{1} << 20U,
                                              (std::uint64_t{1} << 20U) + 1,
                                              std::uint64_t{1} << 31U,
                                              std::uint64_t{1} << 56U,
                                              std::uint64_t{1} << 61U,
                                              std::uint64_t{1} << 62U,
                                              0x7FFFFFFFFFFFFFFF,
                                              0x8000000000000000,
                                              0xFFFFFFFFFFFFFFE0,
                                              0xFFFFFFFFFFFFFFFE,
                                              0xFFFFFFFFFFFFFFFF,
                                              std::uint64_t{1} << 40U};
    return value >= 0xFFF0 ? edges[value & 15U] : value;
}

// What the two formats call differently.
struct Width {
    std::uint64_t elements;
    std::uint64_t bytes;
};
inline std::vector<std::uint64_t>& extents_of(test::TinyGguf::Entry& entry) {
    return entry.ne;
}
inline std::vector<std::uint64_t>& extents_of(test::TinyHf::Entry& entry) {
    return entry.shape;
}
inline void set_type(test::TinyGguf::Entry& entry, std::uint16_t value) {
    static constexpr std::uint32_t readable[] = {0, 1, 2, 3, 8, 14, 30};
    entry.type = value % 4 == 0 ? value / 4 % 50 : readable[value % std::size(readable)];
}
inline void set_type(test::TinyHf::Entry& entry, std::uint16_t value) {
    static constexpr const char* types[] = {"F32", "BF16", "F16", "F32", "BF16", "F16", "F64", "I8", "BOOL", "F8_E4M3", "Q4_0", ""};
    entry.dtype = types[value % std::size(types)];
}
inline Width width_of(const test::TinyGguf::Entry& entry) {
    switch (entry.type) {
        case 0:
            return {1, 4};
        case 2:
            return {32, 18};
        case 3:
            return {32, 20};
        case 8:
            return {32, 34};
        case 14:
            return {256, 210};
        default:
            return {1, 2};
    }
}
inline Width width_of(const test::TinyHf::Entry& entry) {
    return {1, entry.dtype == "F32" ? 4U : entry.dtype == "F64" ? 8U : 2U};
}
inline void set_place(test::TinyGguf::Entry& entry, std::uint16_t value) {
    entry.offset = static_cast<std::int64_t>(number_of(value) & ~31ULL);
}
inline void set_place(test::TinyHf::Entry& entry, std::uint16_t value) {
    entry.data.resize(value % 5000);
}

// As many bytes as type and shape ask for, where that is a size that a test can have.
template <class Entry>
void fit_data(Entry& entry) {
    const Width width = width_of(entry);
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : extents_of(entry)) {
        if (__builtin_mul_overflow(elements, extent, &elements)) return;
    }
    if (elements / width.elements <= most_data / width.bytes) entry.data.resize(elements / width.elements * width.bytes);
}

// Names that mean something, to a model of this shape or to another.
inline std::string other_name(const Change& change) {
    static constexpr const char* names[] = {"lm_head.weight",
                                            "output.weight",
                                            "model.visual.x",
                                            "mtp.x",
                                            "nextn.x",
                                            "blk.2.attn_norm.weight",
                                            "model.language_model.norm.weight",
                                            "",
                                            "rope_freqs.weight",
                                            "blk.1.attn_q.weight",
                                            "blk.18446744073709551615.x",
                                            "\1\"\\"};
    return names[change.value % std::size(names)];
}

template <class Model>
void change_entry(Model& model, const Change& change) {
    if (model.entries.empty()) return;
    auto& entry = model.entries[change.which % model.entries.size()];
    std::vector<std::uint64_t>& extents = extents_of(entry);
    switch (change.kind) {
        case 0:
            if (!extents.empty()) extents[change.at % extents.size()] = number_of(change.value);
            break;
        case 1:
            set_type(entry, change.value);
            fit_data(entry);
            break;
        case 2:
            entry.name = change.at % 2 == 0 ? other_name(change) : model.entries[change.value % model.entries.size()].name;
            break;
        case 3:
            model.entries.erase(model.entries.begin() + change.which % static_cast<std::ptrdiff_t>(model.entries.size()));
            break;
        case 4:
            std::swap(entry, model.entries[change.value % model.entries.size()]);
            break;
        case 5:  // the half of a number that holds its exponent, or a block's scale
            if (entry.data.size() >= 2) std::memcpy(&entry.data[change.at % (entry.data.size() - 1)], &change.value, sizeof change.value);
            break;
        case 6:
            set_place(entry, change.value);
            break;
        case 7:
            fit_data(entry);
            break;
        case 8: {
            auto copy = entry;
            copy.name = other_name(change);
            model.entries.push_back(std::move(copy));
            break;
        }
        default:
            if (change.at % 2 == 0) extents.push_back(number_of(change.value));
            if (change.at % 2 != 0 && !extents.empty()) extents.pop_back();
            break;
    }
}

inline void change_key(test::TinyGguf& model, const Change& change) {
    if (model.keys.empty()) return;
    const auto at = model.keys.begin() + change.which % static_cast<std::ptrdiff_t>(model.keys.size());
    if (change.kind != entry_kinds) {
        model.keys.erase(at);
        return;
    }
    const std::uint64_t number = number_of(change.value);
    const std::string words[] = {test::TinyGguf::u32(static_cast<std::uint32_t>(number)),
                                 test::raw(std::uint32_t{10}) + test::raw(number),
                                 test::TinyGguf::f32(static_cast<float>(change.value) / 256.0F - 64.0F),
                                 test::TinyGguf::string(other_name(change)),
                                 test::TinyGguf::array(7, change.value % 4U, std::string(change.value % 4U, '\1')),
                                 test::TinyGguf::array(4, 2, test::raw(static_cast<std::uint32_t>(number)) + test::raw(std::uint32_t{2}))};
    at->second = words[change.at % std::size(words)];
}

inline void change_json(nlohmann::json& object, const Change& change) {
    if (object.empty()) return;
    const auto at = std::next(object.begin(), change.which % static_cast<std::ptrdiff_t>(object.size()));
    if (at->is_object() && change.at % 8 != 0) {
        Change inside = change;
        inside.which = static_cast<std::uint8_t>(change.at / 8);
        return change_json(*at, inside);
    }
    if (change.kind != entry_kinds) {
        object.erase(at);
        return;
    }
    const nlohmann::json values[] = {number_of(change.value),
                                     change.value % 2 == 0,
                                     change.value / 256.0 - 64.0,
                                     -1 - change.value % 3,
                                     other_name({0, 0, 0, static_cast<std::uint16_t>(change.value % 7)}),
                                     nullptr,
                                     nlohmann::json::array({"full_attention", "linear_attention"})};
    *at = values[change.at / 8 % std::size(values)];
}
inline void change_key(test::TinyHf& model, const Change& change) {
    change_json(model.config, change);
}

// Changes of the model in their order.
template <class Model>
void change_model(Model& model, std::span<const Change> changes) {
    for (const Change& change : changes) {
        if (change.kind < entry_kinds) {
            change_entry(model, change);
        } else if (change.kind < entry_kinds + key_kinds) {
            change_key(model, change);
        }
    }
}

// Then those of a file's bytes.
inline void change_bytes(std::string& bytes, const Change& change) {
    if (change.kind < entry_kinds + key_kinds || bytes.empty()) return;
    // Half of them in the beginning, where the tables are.
    const std::size_t at = change.at % std::min(bytes.size(), change.which % 4 < 2 ? std::size_t{4096} : bytes.size());
    const std::size_t length = std::min<std::size_t>(change.value % 64, bytes.size() - at);
    switch (change.kind - entry_kinds - key_kinds) {
        case 0:
            bytes[at] = static_cast<char>(change.value);
            break;
        case 1:
            bytes.erase(at, length);
            break;
        case 2:
            bytes.insert(at, bytes.substr(change.value % bytes.size(), change.value % 64));
            break;
        default:
            bytes.resize(at);
            break;
    }
}

}  // namespace kestrel::fuzz
