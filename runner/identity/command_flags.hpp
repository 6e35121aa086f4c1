// Takes compiler and linker commands apart, for comparison.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kestrel {

inline constexpr const char* unset_value = "(unset)";

struct CommandFlags {
    std::map<std::string, std::string> defines;  // name -> value ("1" if none is given); a later -D or -U wins
    std::vector<std::string> others;             // in order; a flag and its separate value are joined by a space
};

// Of a command as a manifest holds it. The compiler, -c and the source itself are left out.
[[nodiscard]] CommandFlags command_flags(const std::vector<std::string>& argv, const std::string& source);

struct FlagChange {
    std::string name;
    std::string base;  // the whole flag, or "(unset)"
    std::string candidate;
    auto operator<=>(const FlagChange&) const = default;
};

// Flags that only one side has, those that set the same thing (-O2 and -O3, -fx and -fno-x, -std=a and -std=b) paired into one change.
// If the flags that both sides have stand in another order, that is one more change, named "order of flags".
[[nodiscard]] std::vector<FlagChange> flag_changes(const std::vector<std::string>& base, const std::vector<std::string>& candidate);

}  // namespace kestrel
