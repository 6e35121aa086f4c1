#include "reports/doctor.hpp"

#include <algorithm>
#include <array>

#include "reports/format.hpp"
#include "reports/layout.hpp"

namespace kestrel {
namespace {

const char* status_name(DoctorStatus status) {
    switch (status) {
        case DoctorStatus::ok:
            return "ok";
        case DoctorStatus::missing:
            return "missing";
        case DoctorStatus::not_checked:
            break;
    }
    return "not checked";
}

}  // namespace

std::string doctor_text(const std::vector<DoctorItem>& items) {
    constexpr std::size_t longest_name = 40;  // leaves room for the text beside it
    std::size_t name_columns = 0;
    for (const DoctorItem& item : items) name_columns = std::max(name_columns, std::min(longest_name, columns_of(item.name)));
    std::string text;
    std::array<std::int64_t, 3> counts{};
    for (const DoctorItem& item : items) {
        ++counts.at(static_cast<std::size_t>(item.status));
        std::string first = status_name(item.status);
        first.resize(13, ' ');
        std::string name = printable(item.name);
        if (columns_of(name) < name_columns) name += std::string(name_columns - columns_of(name), ' ');
        if (columns_of(name) > longest_name) {
            text += wrapped(first, name);
            name = std::string(name_columns, ' ');
            first = std::string(13, ' ');
        }
        text += wrapped(first + name + "  ", item.detail);
        if (!item.advice.empty()) text += wrapped(std::string(13 + name_columns + 2, ' ') + "do: ", item.advice);
    }
    return text + std::to_string(counts[0]) + " ok, " + std::to_string(counts[1]) + " missing, " + std::to_string(counts[2]) +
           " not checked\n";
}

nlohmann::json doctor_json(const std::vector<DoctorItem>& items) {
    nlohmann::json list = nlohmann::json::array();
    for (const DoctorItem& item : items) {
        list.push_back({{"name", item.name}, {"status", status_name(item.status)}, {"detail", item.detail}, {"advice", item.advice}});
    }
    return {{"format", 1}, {"kind", "doctor"}, {"items", list}};
}

}  // namespace kestrel
