#include "engine/manifest/dependencies.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace kestrel::build {

namespace fs = std::filesystem;

namespace {

// Length of a line break at `at`, 0 if there is none.
std::size_t line_break(std::string_view text, std::size_t at) {
    if (text.substr(at, 2) == "\r\n") return 2;
    return at < text.size() && text[at] == '\n' ? 1 : 0;
}

// The colon that ends the targets of the first rule: the first one that white space follows.
std::size_t end_of_targets(std::string_view text) {
    for (std::size_t i = text.find(':'); i != std::string_view::npos; i = text.find(':', i + 1)) {
        if (i + 1 == text.size() || std::string_view(" \t\r\n\\").find(text[i + 1]) != std::string_view::npos) return i + 1;
    }
    throw std::runtime_error("dependency file without a rule");
}

std::vector<std::string> split_at_nulls(std::string_view text) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\0', begin);
        if (end == std::string_view::npos) throw std::runtime_error("command record is cut off");
        parts.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

fs::path beside(const fs::path& object, const char* suffix) {
    fs::path path = object;
    path += suffix;
    if (!fs::exists(path)) {
        throw std::runtime_error(path.string() + " is missing: delete " + object.string() + " and build again");
    }
    return path;
}

bool lies_in(const fs::path& path, const fs::path& root) {
    const fs::path relative = path.lexically_relative(root);
    return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

std::vector<std::string> prerequisites(std::string_view make_rule) {
    std::vector<std::string> names;
    std::string name;
    const auto finish = [&] {
        if (!name.empty()) names.push_back(std::move(name));
        name.clear();
    };
    for (std::size_t i = end_of_targets(make_rule); i < make_rule.size();) {
        const char c = make_rule[i];
        const char next = i + 1 < make_rule.size() ? make_rule[i + 1] : '\0';
        if (line_break(make_rule, i) != 0) break;
        if (c == '\\' && line_break(make_rule, i + 1) != 0) {
            finish();
            i += 1 + line_break(make_rule, i + 1);
        } else if (c == ' ' || c == '\t') {
            finish();
            ++i;
        } else if ((c == '\\' && (next == ' ' || next == '#' || next == '\\' || next == ':')) || (c == '$' && next == '$')) {
            name += next;
            i += 2;
        } else {
            name += c;
            ++i;
        }
    }
    finish();
    return names;
}

std::vector<std::string> linker_prerequisites(std::string_view make_rule) {
    std::vector<std::string> names;
    constexpr std::string_view separator = " \\\n  ";
    std::string_view rest = make_rule.substr(end_of_targets(make_rule));
    rest = rest.substr(0, rest.find("\n\n"));  // an empty line ends the rule; one without a name per target follows
    while (rest.starts_with(separator)) {
        rest.remove_prefix(separator.size());
        const std::size_t end = std::min(rest.find(separator), rest.find('\n'));
        names.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end, rest.size()));
    }
    if (names.empty()) throw std::runtime_error("the linker's dependency file names no input");
    return names;
}

Compilation read_compilation(const fs::path& object, const fs::path& watched_root) {
    const fs::path command_record = beside(object, ".cmd");
    std::vector<std::string> parts = split_at_nulls(read_file(command_record));
    if (parts.size() < 2) throw std::runtime_error(command_record.string() + " holds no command");

    Compilation result;
    result.directory = parts.front();
    result.argv.assign(std::next(parts.begin()), parts.end());
    const fs::file_time_type started = fs::last_write_time(command_record);
    for (const std::string& name : prerequisites(read_file(beside(object, ".dep")))) {
        const fs::path input = (result.directory / name).lexically_normal();
        if (lies_in(input, watched_root) && fs::last_write_time(input) > started) {
            throw std::runtime_error(input.string() + " is newer than the compilation that read it: build again");
        }
        result.inputs.push_back(input);
    }
    if (result.inputs.empty()) throw std::runtime_error("the compiler reported no input for " + object.string());
    result.source = result.inputs.front();  // compilers list the source first
    return result;
}

std::string read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path.string());
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (in.bad()) throw std::runtime_error("cannot read " + path.string() + " to its end");
    return text;
}

}  // namespace kestrel::build
