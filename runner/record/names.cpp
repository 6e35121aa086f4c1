#include "runner/record/names.hpp"

#include <array>
#include <stdexcept>

namespace kestrel {
namespace {

constexpr std::array<std::string_view, 3> role_names{"base", "control", "candidate"};
constexpr std::array<std::string_view, 5> verdict_names{"INVALID", "SAME", "FASTER", "SLOWER", "UNDECIDED"};
constexpr std::array<std::string_view, 3> state_names{"running", "sealed", "aborted"};
constexpr std::array<std::string_view, 6> place_names{"define", "flag", "source file", "runtime switch", "commit step", "none"};

template <typename Enum, std::size_t N>
Enum find(const std::array<std::string_view, N>& names, std::string_view name, const char* what) {
    for (std::size_t i = 0; i < N; ++i) {
        if (names[i] == name) return static_cast<Enum>(i);
    }
    throw std::invalid_argument("not a " + std::string(what) + ": '" + std::string(name) + "'");
}

}  // namespace

std::string_view name_of(ArmRole role) {
    return role_names.at(static_cast<std::size_t>(role));
}
std::string_view name_of(VerdictKind kind) {
    return verdict_names.at(static_cast<std::size_t>(kind));
}
std::string_view name_of(SessionState state) {
    return state_names.at(static_cast<std::size_t>(state));
}
std::string_view name_of(PlaceKind kind) {
    return place_names.at(static_cast<std::size_t>(kind));
}

ArmRole arm_role_from(std::string_view name) {
    return find<ArmRole>(role_names, name, "arm");
}
VerdictKind verdict_kind_from(std::string_view name) {
    return find<VerdictKind>(verdict_names, name, "verdict");
}
SessionState session_state_from(std::string_view name) {
    return find<SessionState>(state_names, name, "session state");
}
PlaceKind place_kind_from(std::string_view name) {
    return find<PlaceKind>(place_names, name, "place");
}

}  // namespace kestrel
