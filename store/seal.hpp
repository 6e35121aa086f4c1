// The hash over everything a session recorded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/sqlite.hpp"

namespace kestrel {

// SHA-256 as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string store_sha256_hex(std::string_view bytes);

// SHA-256 over all rows of the session, with `ended_at` as its end (the row has none before it is sealed).
//
// Hashed text: "kestrel-seal-1\n", "ended <ended_at>\n", then for each table in the order of seal.cpp "<name> <rows>\n" and its rows in the
// order of their keys; a row is its columns in the order of the SELECT and "\n". A column is "n;" (NULL), "i<decimal>;" (integer),
// "r<decimal of the IEEE-754 bits>;" (real), "t<bytes>:<text>;" or "b<bytes>:<blob>;". Local keys are replaced by the hashes
// they stand for, so the seal is the same in any database that holds the session. A table that came after the first schema is left out if
// the session has no rows in it, so sessions that were sealed before it keep their seal.
[[nodiscard]] std::string compute_seal(Connection& connection, std::int64_t session_id, const std::string& ended_at);

}  // namespace kestrel
