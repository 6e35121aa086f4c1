#include "reports/format.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace kestrel {
namespace {

std::string two_digits(std::int64_t value) {
    return (value < 10 ? "0" : "") + std::to_string(value);
}

std::string beginning(std::string_view text, std::size_t length) {
    return text.empty() ? "-" : std::string(text.substr(0, length));
}

}  // namespace

std::string fixed_text(double value, int decimals) {
    std::array<char, 400> buffer{};  // a double's 309 digits before the point, and then some
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
    if (!std::isfinite(value) || error != std::errc()) return "n/a";
    std::string text(buffer.data(), end);
    const bool is_zero = text.find_first_not_of("-0.") == std::string::npos;
    return is_zero && text.front() == '-' ? text.substr(1) : text;
}

std::string ms_text(double ms) {
    return fixed_text(ms, std::abs(ms) < 1.0 ? 6 : 3);
}

std::string ratio_text(double ratio) {
    return fixed_text(ratio, 4);
}

std::string log_ratio_text(double d) {
    return ratio_text(std::exp(d));
}

std::string percent_text(double percent, int decimals) {
    return fixed_text(percent, decimals) + " %";
}

std::string confidence_text(double confidence) {
    const double percent = confidence * 100.0;
    return percent_text(percent, std::abs(percent - std::round(percent)) < 1e-6 ? 0 : 1);
}

std::string count_text(std::int64_t count, std::string_view singular) {
    return std::to_string(count) + " " + std::string(singular) + (count == 1 ? "" : "s");
}

std::string duration_text(double seconds) {
    if (!std::isfinite(seconds) || seconds < 0.0 || seconds > 1e9) return "n/a";
    const std::int64_t whole = std::llround(seconds);
    if (whole < 60) return std::to_string(whole) + " s";
    if (whole < 3600) return std::to_string(whole / 60) + " min " + two_digits(whole % 60) + " s";
    return std::to_string(whole / 3600) + " h " + two_digits(whole / 60 % 60) + " min";
}

std::string interval_text(const Interval& interval) {
    if (interval.replicates < 1) return "n/a";
    std::string centre = log_ratio_text(interval.d);
    if (interval.replicates < 2) return centre;
    return centre + " [" + log_ratio_text(interval.lo) + ", " + log_ratio_text(interval.hi) + "]";
}

std::string short_hash(std::string_view sha256) {
    return beginning(sha256, 12);
}

std::string short_id(std::string_view uuid) {
    return beginning(uuid, 8);
}

}  // namespace kestrel
