#include "runner/stats/published.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

#include "runner/record/error.hpp"

namespace kestrel {
namespace {

std::vector<std::string> split(std::string_view line) {
    std::vector<std::string> cells;
    while (true) {
        const std::size_t comma = line.find(',');
        cells.emplace_back(line.substr(0, comma));
        if (comma == std::string_view::npos) return cells;
        line.remove_prefix(comma + 1);
    }
}

[[noreturn]] void refuse(int line, const std::string& what) {
    throw Error(ExitCode::usage, "Line " + std::to_string(line) + " of the table of rounds " + what + ". Correct the file.");
}

double number(const std::string& cell, int line) {
    double value = 0.0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size()) refuse(line, "has '" + cell + "' where a number belongs");
    return value;
}

void add_row(RoundTable& table, std::string_view line, int line_number) {
    const std::vector<std::string> cells = split(line);
    if (table.columns.empty()) {
        table.columns = cells;
        table.values.resize(cells.size());
        table.text.resize(cells.size());
        return;
    }
    if (cells.size() != table.columns.size()) refuse(line_number, "has another number of cells than its header");
    for (std::size_t i = 0; i < cells.size(); ++i) {
        table.values[i].push_back(number(cells[i], line_number));
        table.text[i].push_back(cells[i]);
    }
}

}  // namespace

RoundTable parse_round_table(std::string_view csv) {
    RoundTable table;
    int line_number = 0;
    while (!csv.empty()) {
        ++line_number;
        const std::size_t end = csv.find('\n');
        std::string_view line = csv.substr(0, end);
        csv.remove_prefix(end == std::string_view::npos ? csv.size() : end + 1);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        if (line.empty()) continue;
        if (line.front() == '#') {
            table.comments.append(line).append("\n");
        } else {
            add_row(table, line, line_number);
        }
    }
    if (table.values.empty() || table.values[0].empty()) refuse(line_number, "is its last, and it holds no rounds");
    return table;
}

std::size_t column_index(const RoundTable& table, std::string_view name) {
    const auto found = std::find(table.columns.begin(), table.columns.end(), name);
    if (found != table.columns.end()) return static_cast<std::size_t>(found - table.columns.begin());
    std::string known;
    for (const std::string& column : table.columns) known += " " + column;
    throw Error(ExitCode::usage, "The table of rounds has no column '" + std::string(name) + "'. It has:" + known);
}

std::string rounded_like(std::string_view printed, double value) {
    const std::size_t point = printed.find('.');
    const int decimals = point == std::string_view::npos ? 0 : static_cast<int>(printed.size() - point - 1);
    std::array<char, 400> buffer{};  // longer than any double in fixed notation with few decimals
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
    if (error != std::errc()) throw std::invalid_argument("too many digits");
    return {buffer.data(), end};
}

std::vector<std::string> unsupported(const std::vector<PublishedFigure>& figures) {
    std::vector<std::string> names;
    for (const PublishedFigure& figure : figures) {
        if (!is_supported(figure)) names.push_back(figure.name);
    }
    return names;
}

}  // namespace kestrel
