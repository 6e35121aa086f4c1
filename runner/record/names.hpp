// The one spelling of each enumerator, for storage, JSON and people.
#pragma once

#include <string>
#include <string_view>

#include "runner/record/record.hpp"

namespace kestrel {

[[nodiscard]] std::string_view name_of(ArmRole role);        // "base", "control", "candidate"
[[nodiscard]] std::string_view name_of(VerdictKind kind);    // "INVALID", "SAME", "FASTER", "SLOWER", "UNDECIDED"
[[nodiscard]] std::string_view name_of(SessionState state);  // "running", "sealed", "aborted"
[[nodiscard]] std::string_view name_of(PlaceKind kind);      // "define", "flag", "source file", "runtime switch", "commit step", "none"

// The inverse; throws std::invalid_argument that names the text.
[[nodiscard]] ArmRole arm_role_from(std::string_view name);
[[nodiscard]] VerdictKind verdict_kind_from(std::string_view name);
[[nodiscard]] SessionState session_state_from(std::string_view name);
[[nodiscard]] PlaceKind place_kind_from(std::string_view name);

// Whether Session::device, as its engine told it, is a GPU.
[[nodiscard]] inline bool is_gpu(std::string_view device) {
    return device.substr(0, 6) == "cuda: ";
}

[[nodiscard]] inline std::size_t index_of(ArmRole role) {
    return static_cast<std::size_t>(role);
}

}  // namespace kestrel
