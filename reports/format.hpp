// The only place where reports turn numbers into text. None of it depends on the locale. What is not finite reads "n/a".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/record/record.hpp"

namespace kestrel {

// Fixed notation, never "-0.00".
[[nodiscard]] std::string fixed_text(double value, int decimals);

[[nodiscard]] std::string ms_text(double ms);                                         // "18.833"; below 1 ms "0.018833", which is to the ns
[[nodiscard]] std::string ratio_text(double ratio);                                   // "1.1476"
[[nodiscard]] std::string log_ratio_text(double d);                                   // exp(d): "1.1476"
[[nodiscard]] std::string percent_text(double percent, int decimals = 2);             // "1.00 %"
[[nodiscard]] std::string confidence_text(double confidence);                         // 0.95: "95 %", 0.995: "99.5 %"
[[nodiscard]] std::string count_text(std::int64_t count, std::string_view singular);  // "1 round", "6 rounds"
[[nodiscard]] std::string duration_text(double seconds);                              // "45 s", "2 min 05 s", "1 h 05 min"

// "1.1476 [1.1432, 1.1520]"; only the first number if there were too few replicates for an interval.
[[nodiscard]] std::string interval_text(const Interval& interval);

// The first twelve digits of a hash or the first eight of a UUID; "-" if there is none.
[[nodiscard]] std::string short_hash(std::string_view sha256);
[[nodiscard]] std::string short_id(std::string_view uuid);

}  // namespace kestrel
