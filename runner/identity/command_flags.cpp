#include "runner/identity/command_flags.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace kestrel {

namespace {

bool takes_separate_value(std::string_view flag) {
    constexpr std::array<std::string_view, 21> flags{"-D",
                                                     "-U",
                                                     "-I",
                                                     "-L",
                                                     "-l",
                                                     "-T",
                                                     "-u",
                                                     "-x",
                                                     "-z",
                                                     "-include",
                                                     "-imacros",
                                                     "-isystem",
                                                     "-iquote",
                                                     "-idirafter",
                                                     "-isysroot",
                                                     "--param",
                                                     "-Xlinker",
                                                     "-Xassembler",
                                                     "-Xpreprocessor",
                                                     "-Xcompiler",
                                                     "-gencode"};
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

// What a flag sets: two flags with one name are two values of the same thing.
std::string flag_name(const std::string& flag) {
    if (flag.starts_with("-O")) return "-O";
    for (const std::string_view negated : {"-fno-", "-mno-", "-Wno-"}) {
        if (flag.starts_with(negated)) return flag.substr(0, 2) + flag.substr(negated.size());  // "-fno-x" sets "-fx"
    }
    if (flag.starts_with("-Wl,-soname,")) return "-Wl,-soname";
    const std::size_t equals = flag.find('=');
    return equals == std::string::npos ? flag : flag.substr(0, equals);
}

void define(CommandFlags& flags, const std::string& text) {
    const std::size_t equals = text.find('=');
    flags.defines[text.substr(0, equals)] = equals == std::string::npos ? "1" : text.substr(equals + 1);
}

// Elements of `from` that are not in `other`, each counted as often as it occurs, in order.
std::vector<std::string> only_in(const std::vector<std::string>& from, std::vector<std::string> other) {
    std::vector<std::string> rest;
    for (const std::string& flag : from) {
        const auto match = std::find(other.begin(), other.end(), flag);
        if (match == other.end()) {
            rest.push_back(flag);
        } else {
            other.erase(match);
        }
    }
    return rest;
}

std::string joined(const std::vector<std::string>& flags) {
    std::string text;
    for (const std::string& flag : flags) text += (text.empty() ? "" : " ") + flag;
    return text;
}

}  // namespace

CommandFlags command_flags(const std::vector<std::string>& argv, const std::string& source) {
    CommandFlags flags;
    for (std::size_t i = 1; i < argv.size(); ++i) {
        const std::string& flag = argv[i];
        if (flag == "-c" || flag == source || flag == "./" + source) continue;
        std::string value;
        if (takes_separate_value(flag) && i + 1 < argv.size()) value = argv[++i];
        if (flag.starts_with("-D")) {
            define(flags, flag.substr(2) + value);
        } else if (flag.starts_with("-U")) {
            flags.defines[flag.substr(2) + value] = "(undefined)";
        } else {
            flags.others.push_back(value.empty() ? flag : flag + " " + value);
        }
    }
    return flags;
}

std::vector<FlagChange> flag_changes(const std::vector<std::string>& base, const std::vector<std::string>& candidate) {
    if (base == candidate) return {};
    const std::vector<std::string> removed = only_in(base, candidate);
    std::vector<std::string> added = only_in(candidate, base);

    std::vector<FlagChange> changes;
    const std::vector<std::string> kept_before = only_in(base, removed);
    const std::vector<std::string> kept_after = only_in(candidate, added);
    if (kept_before != kept_after) changes.push_back({"order of flags", joined(kept_before), joined(kept_after)});
    for (const std::string& flag : removed) {
        const std::string name = flag_name(flag);
        const auto partner = std::find_if(added.begin(), added.end(), [&](const std::string& other) { return flag_name(other) == name; });
        changes.push_back({name, flag, partner == added.end() ? unset_value : *partner});
        if (partner != added.end()) added.erase(partner);
    }
    for (const std::string& flag : added) changes.push_back({flag_name(flag), unset_value, flag});
    return changes;
}

}  // namespace kestrel
