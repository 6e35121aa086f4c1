// Do raw rounds support a published figure?
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kestrel {

// One table of rounds as published: '#' comments, a header line, then numbers separated by commas.
struct RoundTable {
    std::string comments;                        // the comment lines, joined by line breaks
    std::vector<std::string> columns;            // names from the header line
    std::vector<std::vector<double>> values;     // [column][row]
    std::vector<std::vector<std::string>> text;  // the same cells as printed
};

// Throws Error{usage} that names the line if the text is not such a table.
[[nodiscard]] RoundTable parse_round_table(std::string_view csv);

// The index of a column; throws Error{usage} with the names there are.
[[nodiscard]] std::size_t column_index(const RoundTable& table, std::string_view name);

// `value` rounded to as many decimals as `printed` has, as text: "1.14" and 1.1311 give "1.13".
[[nodiscard]] std::string rounded_like(std::string_view printed, double value);

struct PublishedFigure {
    std::string name;
    std::string printed;    // the digits as published, without unit; a sign only if it is part of the figure
    double computed = 0.0;  // from the raw rounds
};

// A figure is supported if the computed value rounds to exactly the published digits.
[[nodiscard]] inline bool is_supported(const PublishedFigure& figure) {
    return rounded_like(figure.printed, figure.computed) == figure.printed;
}

// The names of the figures that the raw rounds do not support, in the given order.
[[nodiscard]] std::vector<std::string> unsupported(const std::vector<PublishedFigure>& figures);

}  // namespace kestrel
