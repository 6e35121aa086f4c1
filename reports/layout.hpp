// Text within 120 columns: wrapped paragraphs, labelled fields, aligned tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kestrel {

inline constexpr std::size_t report_width = 120;

// `text` with control characters replaced by '?', so that no name from a model or an engine can steer a terminal.
[[nodiscard]] std::string printable(std::string_view text);

// Columns that UTF-8 text takes if each code point takes one.
[[nodiscard]] std::size_t columns_of(std::string_view text);

// `first` and then `text`, broken at spaces; further lines start below the text. Words longer than a line are broken. Ends
// with a line break.
[[nodiscard]] std::string wrapped(const std::string& first, std::string_view text);

// "  label        text\n", wrapped; the text starts at column 16.
[[nodiscard]] std::string field(std::string_view label, std::string_view text);

enum class Align { left, right };

// A table indented by two columns, with a header line. Columns are as wide as their widest cell.
class Table {
  public:
    void add_column(std::string title, Align align);
    void add_row(std::vector<std::string> cells);  // as many as there are columns
    [[nodiscard]] std::string text() const;

  private:
    std::vector<std::string> titles_;
    std::vector<Align> aligns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace kestrel
