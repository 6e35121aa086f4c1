#include "runner/session/inspection_memo.hpp"

#include <algorithm>
#include <filesystem>

#include "runner/identity/sha256.hpp"
#include "runner/record/error.hpp"
#include "runner/record/json.hpp"

namespace kestrel::session {
namespace {

namespace fs = std::filesystem;

constexpr int memo_format = 1;
constexpr std::int64_t youngest_ns = 2'000'000'000;
constexpr std::size_t most_files = 4096;  // a directory with more is no model's
constexpr std::uint64_t largest_memo = std::uint64_t{4} << 20;

void add_file(const std::string& path, std::int64_t now, ModelFiles& model) {
    const auto stamp = platform::stamp_of(path);
    if (!stamp) {
        model.problem = path + " is not a file that can be read";
        return;
    }
    // Also those from the future: their next change may get the same time.
    if (std::max(stamp->modified_ns, stamp->changed_ns) > now - youngest_ns) model.problem = path + " was changed less than 2 s ago";
    model.files.push_back({path, *stamp});
    if (model.files.size() > most_files) model.problem = "the model's directory holds more than " + std::to_string(most_files) + " files";
}

nlohmann::json json_of(const ModelFiles& model) {
    nlohmann::json files = nlohmann::json::array();
    for (const ModelFiles::Entry& one : model.files) {
        files.push_back({{"path", one.path},
                         {"size", one.stamp.size},
                         {"modified_ns", one.stamp.modified_ns},
                         {"changed_ns", one.stamp.changed_ns},
                         {"inode", one.stamp.inode},
                         {"device", one.stamp.device}});
    }
    return files;
}

}  // namespace

ModelFiles look_at_model(const std::string& path) {
    ModelFiles model;
    const std::int64_t now = platform::now_ns();
    std::error_code error;
    if (!fs::is_directory(path, error)) {
        add_file(path, now, model);
        return model;
    }
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
        std::error_code odd;
        const bool folder = at->is_directory(odd);
        if (folder && at->is_symlink(odd)) model.problem = at->path().string() + " is a link to a directory, which is not followed";
        if (!folder) add_file(at->path().string(), now, model);
        if (model.files.size() > most_files) return model;
    }
    if (error) model.problem = path + " cannot be listed: " + error.message();
    std::sort(model.files.begin(), model.files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return model;
}

std::string MemoKey::identity() const {
    return dump_json(
        {{"format", memo_format}, {"artifact", artifact}, {"switches", switches}, {"model", model}, {"host", host}, {"device", device}});
}

std::string memo_text(const MemoKey& key, const InspectionMemo& memo) {
    const nlohmann::json content{{"identity", key.identity()},  {"files", json_of(key.files)}, {"digest", memo.digest},
                                 {"layout_id", memo.layout_id}, {"bytes", memo.bytes},         {"block_hash", memo.block_hash}};
    return dump_json({{"content", content}, {"sha256", sha256_hex(dump_json(content))}});
}

std::optional<InspectionMemo> read_memo(const std::string& path, const MemoKey& key) {
    if (!key.files.problem.empty()) return std::nullopt;
    try {
        const platform::File file = platform::File::open_to_read(path);
        if (file.size() > largest_memo) return std::nullopt;
        std::string text(file.size(), '\0');
        file.read_at(0, std::as_writable_bytes(std::span(text)));
        const nlohmann::json j = parse_json(text);
        const nlohmann::json& content = j.at("content");
        if (j.at("sha256").get<std::string>() != sha256_hex(dump_json(content))) return std::nullopt;
        if (content.at("identity").get<std::string>() != key.identity() || content.at("files") != json_of(key.files)) return std::nullopt;
        return InspectionMemo{content.at("digest").get<std::string>(), content.at("layout_id").get<std::string>(),
                              content.at("bytes").get<std::uint64_t>(), content.at("block_hash").get<std::string>()};
    } catch (const std::exception&) {
        return std::nullopt;  // a full inspection follows, and a new memo
    }
}

}  // namespace kestrel::session
