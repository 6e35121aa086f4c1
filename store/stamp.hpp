// Names and times of records: UUIDs and UTC timestamps.
#pragma once

#include <string>
#include <string_view>

namespace kestrel {

// A version 4 UUID in lower case, from the operating system's random source. Throws Error(storage) if that source fails.
[[nodiscard]] std::string new_uuid();

// Now as UTC, RFC 3339 with milliseconds: "2025-01-31T23:59:59.123Z". Sorts by time as text.
[[nodiscard]] std::string utc_now();

// 36 characters, lower-case hexadecimal digits and hyphens in the places of a UUID.
[[nodiscard]] bool is_uuid(std::string_view text);

}  // namespace kestrel
