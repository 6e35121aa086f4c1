#include "engine/json_file.hpp"

#include <fstream>
#include <set>
#include <vector>

#include "engine/error.hpp"
#include "engine/text.hpp"

namespace kestrel {
namespace {

using nlohmann::json;

// No file of the family nests deeper than six. Each level costs the parser far more memory than the file one byte.
constexpr int deepest = 32;

}  // namespace

json parse_json(std::string_view text, const std::string& source) {
    std::vector<std::set<std::string>> keys(deepest + 2);  // of the open object at each depth
    const auto watch = [&](int depth, json::parse_event_t event, json& value) {
        if (depth > deepest) bad_model(source + ": not valid JSON for a model: nested deeper than " + std::to_string(deepest));
        if (event == json::parse_event_t::object_start) keys[static_cast<std::size_t>(depth) + 1].clear();
        if (event == json::parse_event_t::key && !keys[static_cast<std::size_t>(depth)].insert(value.get<std::string>()).second) {
            bad_model(source + ": " + in_quotes(value.get<std::string>()) + " is given twice (duplicate)");
        }
        return true;
    };
    try {
        json parsed = json::parse(text, watch);
        if (!parsed.is_object()) bad_model(source + ": expected a JSON object at the top, found " + parsed.type_name());
        return parsed;
    } catch (const json::exception& problem) {
        bad_model(source + ": not valid JSON: " + problem.what());
    }
}

json read_json(const std::filesystem::path& path, std::uintmax_t most_bytes) {
    const std::string file = path.string();
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (error) bad_model(file + ": cannot be read (" + error.message() + "); a Hugging Face directory needs it");
    if (bytes > most_bytes)
        bad_model(file + ": " + std::to_string(bytes) + " bytes, more than the " + std::to_string(most_bytes) + " allowed");
    std::ifstream in(path, std::ios::binary);
    std::string text(bytes, '\0');
    if (!in.read(text.data(), static_cast<std::streamsize>(bytes))) bad_model(file + ": cannot be read");
    return parse_json(text, file);
}

}  // namespace kestrel
