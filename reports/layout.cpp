#include "reports/layout.hpp"

#include <algorithm>
#include <stdexcept>

namespace kestrel {
namespace {

constexpr std::size_t field_text_column = 16;

bool starts_code_point(char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
}

// Cuts `word` after at most `columns` columns; never inside a code point.
std::string_view cut(std::string_view word, std::size_t columns) {
    std::size_t used = 0;
    for (std::size_t i = 0; i < word.size(); ++i) {
        if (starts_code_point(word[i]) && used++ == columns) return word.substr(0, i);
    }
    return word;
}

std::string padded(const std::string& text, std::size_t width, Align align) {
    const std::string space(width - std::min(width, columns_of(text)), ' ');
    return align == Align::left ? text + space : space + text;
}

void trim_right(std::string& line) {
    line.erase(line.find_last_not_of(' ') + 1);
}

}  // namespace

std::string printable(std::string_view text) {
    std::string result(text);
    for (char& c : result) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20U || byte == 0x7fU) c = '?';
    }
    return result;
}

std::size_t columns_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

std::string wrapped(const std::string& first, std::string_view text) {
    const std::size_t indent = columns_of(first);
    if (indent + 8 > report_width) throw std::invalid_argument("nothing fits beside so long a label");
    const std::string clean = printable(text);
    std::string result;
    std::string line = first;
    bool has_word = false;
    const auto break_line = [&] {
        trim_right(line);
        result += line + "\n";
        line.assign(indent, ' ');
        has_word = false;
    };
    std::string_view rest = clean;
    while (!rest.empty()) {
        const std::size_t space = rest.find(' ');
        std::string_view word = rest.substr(0, space);
        rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
        if (has_word && columns_of(line) + 1 + columns_of(word) > report_width) break_line();
        if (has_word) line += ' ';
        while (columns_of(line) + columns_of(word) > report_width) {
            const std::string_view part = cut(word, report_width - columns_of(line));
            line += part;
            word.remove_prefix(part.size());
            break_line();
        }
        line += word;
        has_word = true;
    }
    trim_right(line);
    return result + line + "\n";
}

std::string field(std::string_view label, std::string_view text) {
    std::string first = "  " + std::string(label) + " ";
    if (first.size() < field_text_column) first.resize(field_text_column, ' ');
    return wrapped(first, text);
}

void Table::add_column(std::string title, Align align) {
    titles_.push_back(std::move(title));
    aligns_.push_back(align);
}

void Table::add_row(std::vector<std::string> cells) {
    if (cells.size() != titles_.size()) throw std::invalid_argument("a table row has as many cells as the table has columns");
    for (std::string& cell : cells) cell = printable(cell);
    rows_.push_back(std::move(cells));
}

std::string Table::text() const {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < titles_.size(); ++i) {
        widths.push_back(columns_of(titles_[i]));
        for (const auto& row : rows_) widths[i] = std::max(widths[i], columns_of(row[i]));
    }
    std::string result;
    const auto add_line = [&](const std::vector<std::string>& cells) {
        std::string line;
        for (std::size_t i = 0; i < cells.size(); ++i) line += "  " + padded(cells[i], widths[i], aligns_[i]);
        trim_right(line);
        result += line + "\n";
    };
    add_line(titles_);
    for (const auto& row : rows_) add_line(row);
    return result;
}

}  // namespace kestrel
