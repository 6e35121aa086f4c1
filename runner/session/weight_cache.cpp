#include "runner/session/weight_cache.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "runner/identity/sha256.hpp"
#include "runner/record/error.hpp"

namespace kestrel::session {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view block_ending = ".weights";
constexpr std::string_view memo_ending = ".memo";
constexpr std::string_view temporary_prefix = ".incoming-";
constexpr std::size_t most_memos = 256;

struct Kept {
    fs::path path;
    fs::file_time_type used;
    std::uint64_t bytes = 0;
};

// The regular files of one kind, the least recently used first. What vanishes meanwhile is left out.
std::vector<Kept> files_of(const std::string& folder, std::string_view ending) {
    std::vector<Kept> kept;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        if (!at->path().filename().string().ends_with(ending)) continue;
        std::error_code gone;
        if (!at->is_regular_file(gone) || at->is_symlink(gone)) continue;
        const Kept one{at->path(), at->last_write_time(gone), at->file_size(gone)};
        if (!gone) kept.push_back(one);
    }
    std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
    return kept;
}

std::uint64_t total_of(const std::vector<Kept>& kept) {
    std::uint64_t total = 0;
    for (const Kept& one : kept) total += one.bytes;
    return total;
}

// Only whoever holds the folder's lock writes in it, so what lies under a temporary name belongs to a process that is gone.
void remove_leftovers(const std::string& folder) {
    std::error_code error;
    std::vector<fs::path> leftovers;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        if (at->path().filename().string().starts_with(temporary_prefix)) leftovers.push_back(at->path());
    }
    for (const fs::path& path : leftovers) fs::remove(path, error);
}

// Runs `body` as the only writer of the folder. The reason if it could not.
template <class Body>
std::optional<std::string> as_writer(const std::string& folder, const Body& body) {
    try {
        platform::require_own_folder(folder);
        const auto lock = platform::FolderLock::try_lock(folder);
        if (!lock) return "another process is writing in " + folder;
        remove_leftovers(folder);
        body();
        return std::nullopt;
    } catch (const std::exception& error) {
        return error.what();
    }
}

std::string name_of(const std::string& identity, std::string_view ending) {
    return sha256_hex(identity) + std::string(ending);
}

}  // namespace

std::string WeightCache::path_of(const WeightKey& key) const {
    // Hashed, because a layout id is an engine's text and no file name.
    return settings_.folder + "/" + name_of(key.digest + "\n" + key.layout_id + "\n" + std::to_string(key.bytes), block_ending);
}

std::optional<std::string> WeightCache::read(const WeightKey& key, const std::string& block_hash, const WeightBlock& block) const {
    try {
        if (block.bytes != key.bytes) return "the lent block has another size than the kept one";
        platform::require_own_folder(settings_.folder);
        const std::string path = path_of(key);
        platform::File file = platform::File::open_to_read(path);
        read_weight_file(file, path, key, block_hash, &block, work_);
        file.mark_used();
        return std::nullopt;
    } catch (const std::exception& error) {
        return error.what();
    }
}

bool WeightCache::holds(const WeightKey& key, const std::string& block_hash) const {
    try {
        platform::require_own_folder(settings_.folder);
        const std::string path = path_of(key);
        return read_weight_header(platform::File::open_to_read(path), path, key) == block_hash;
    } catch (const std::exception&) {
        return false;
    }
}

// Throws Error(storage) if there cannot be room for one more file of this size.
void WeightCache::make_room(std::uint64_t bytes, const std::string& keep) const {
    if (bytes > settings_.limit) {
        throw Error(ExitCode::storage, "a block of " + std::to_string(bytes) + " bytes is larger than the cache may be (" +
                                           std::to_string(settings_.limit) + "); raise KESTREL_AB_CACHE_LIMIT");
    }
    if (bytes > platform::largest_file()) {
        throw Error(ExitCode::storage, "this process may not write a file of " + std::to_string(bytes) + " bytes (ulimit -f)");
    }
    std::vector<Kept> kept = files_of(settings_.folder, block_ending);
    std::erase_if(kept, [&](const Kept& one) { return one.path == keep; });
    const std::uint64_t total = total_of(kept);
    const platform::Space space = platform::space_of(settings_.folder);
    const std::uint64_t wanted_free = bytes + reserve_of(space);
    const std::uint64_t over_limit = total + bytes > settings_.limit ? total + bytes - settings_.limit : 0;
    const std::uint64_t lacking = space.free < wanted_free ? wanted_free - space.free : 0;
    const std::uint64_t to_free = std::max(over_limit, lacking);
    if (to_free > total) {  // then nothing older is sacrificed in vain
        throw Error(ExitCode::storage, "the file system of " + settings_.folder + " has " + std::to_string(space.free) +
                                           " bytes free; a block of " + std::to_string(bytes) + " would leave less than the " +
                                           std::to_string(reserve_of(space)) + " that the cache never takes");
    }
    std::uint64_t freed = 0;
    for (const Kept& oldest : kept) {
        if (freed >= to_free) break;
        std::error_code error;
        if (fs::remove(oldest.path, error) && !error) freed += oldest.bytes;
    }
    if (freed < to_free) throw Error(ExitCode::storage, "older blocks in " + settings_.folder + " cannot be removed");
}

std::optional<std::string> WeightCache::store(const WeightKey& key, const std::string& block_hash, const WeightBlock& block,
                                              bool replace) const {
    return as_writer(settings_.folder, [&] {
        if (!replace && holds(key, block_hash)) return;  // another process was quicker
        const std::string path = path_of(key);
        std::error_code error;
        if (fs::is_directory(fs::symlink_status(path, error))) throw Error(ExitCode::storage, path + " is a folder; remove it");
        fs::remove(path, error);  // it is no good, and its space is needed
        make_room(weight_file_bytes(key.bytes), path);
        platform::File file = platform::File::create(settings_.folder, std::string(temporary_prefix));
        write_weight_file(file, path, key, block_hash, block, work_);
        file.put_in_place(path);
    });
}

std::optional<InspectionMemo> WeightCache::find(const MemoKey& key) const {
    try {
        platform::require_own_folder(settings_.folder);
        return read_memo(settings_.folder + "/" + name_of(key.identity(), memo_ending), key);
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

std::optional<std::string> WeightCache::store(const MemoKey& key, const InspectionMemo& memo) const {
    return as_writer(settings_.folder, [&] {
        const std::vector<Kept> kept = files_of(settings_.folder, memo_ending);
        for (std::size_t i = 0; i + most_memos <= kept.size(); ++i) {
            std::error_code ignored;
            fs::remove(kept[i].path, ignored);
        }
        platform::File file = platform::File::create(settings_.folder, std::string(temporary_prefix));
        const std::string text = memo_text(key, memo);
        file.write_at(0, std::as_bytes(std::span(text)));
        file.put_in_place(settings_.folder + "/" + name_of(key.identity(), memo_ending));
    });
}

CacheUsage usage_of(const CacheSettings& settings) {
    CacheUsage usage;
    std::error_code error;
    if (!fs::exists(settings.folder, error)) return usage;
    try {
        platform::require_own_folder(settings.folder);
    } catch (const Error& problem) {
        usage.problem = problem.what();
    }
    const std::vector<Kept> kept = files_of(settings.folder, block_ending);
    usage.blocks = kept.size();
    usage.bytes = total_of(kept);
    return usage;
}

std::uint64_t reserve_of(const platform::Space& space) {
    return std::min(space.total / 20, std::uint64_t{8} << 30);
}

}  // namespace kestrel::session
