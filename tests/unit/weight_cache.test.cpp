// Weights blocks on disk: what was kept comes back, and nothing else ever does.
#include "runner/session/weight_cache.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/unit/identity_fixture.hpp"

using namespace kestrel;
using namespace kestrel::session;
using identity_test::ScratchFolder;
using identity_test::write_file;

namespace {

namespace fs = std::filesystem;

constexpr std::size_t several_chunks = (std::size_t{17} << 20) + 12345;  // two of 8 MiB and a piece
constexpr std::size_t small = 100'000;

std::vector<std::byte> content(std::size_t bytes, std::uint64_t seed) {
    std::vector<std::byte> out(bytes);
    std::uint64_t x = seed * 2 + 1;
    for (std::byte& one : out) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        one = static_cast<std::byte>(x >> 56);
    }
    return out;
}

// Memory as the host sees it, or as it sees a device's: through copies alone.
WeightBlock block_of(std::vector<std::byte>& memory, bool device = false) {
    WeightBlock block;
    block.bytes = memory.size();
    if (!device) {
        block.host = memory.data();
        return block;
    }
    block.put = [&](std::uint64_t offset, std::span<const std::byte> from) { std::memcpy(&memory.at(offset), from.data(), from.size()); };
    block.get = [&](std::uint64_t offset, std::span<std::byte> to) { std::memcpy(to.data(), &memory.at(offset), to.size()); };
    return block;
}

struct Cache {
    explicit Cache(std::uint64_t limit = std::uint64_t{1} << 30, BlockWork work = {3, {}})
        : settings{(folder / "cache").string(), limit, 1, false}, cache(settings, std::move(work)) {}

    // Keeps a block of this content; the reason if it was not kept.
    std::optional<std::string> keep(const WeightKey& key, std::vector<std::byte> memory) const {
        const WeightBlock block = block_of(memory);
        return cache.store(key, cache.hash(block), block);
    }
    [[nodiscard]] fs::path file(const WeightKey& key) const { return cache.path_of(key); }
    [[nodiscard]] std::string hash(std::vector<std::byte> memory) const { return cache.hash(block_of(memory)); }
    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(settings.folder), fs::directory_iterator()));
    }

    ScratchFolder folder;
    CacheSettings settings;
    WeightCache cache;
};

WeightKey key_of(std::size_t bytes, char digit = 'a') {
    return {std::string(64, digit), "cpu-v2-0123", bytes};
}

std::string bytes_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Runs `body` in a process of its own; its exit code, or minus the signal that ended it.
template <class Body>
int in_child(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("a kept block comes back", "[cache]") {
    const std::size_t bytes = GENERATE(std::size_t{1}, small, std::size_t{8} << 20, several_chunks);
    const bool from_device = GENERATE(false, true);
    const bool to_device = GENERATE(false, true);
    const Cache cache;
    std::vector<std::byte> memory = content(bytes, 1);
    const WeightBlock block = block_of(memory, from_device);
    const std::string hash = cache.cache.hash(block);
    std::vector<std::byte> lent(bytes);
    CHECK(cache.cache.read(key_of(bytes), hash, block_of(lent, to_device)));  // nothing is there yet
    CHECK_FALSE(cache.cache.holds(key_of(bytes), hash));
    REQUIRE_FALSE(cache.cache.store(key_of(bytes), hash, block));
    CHECK(cache.cache.holds(key_of(bytes), hash));
    CHECK_FALSE(cache.cache.read(key_of(bytes), hash, block_of(lent, to_device)));
    CHECK(lent == memory);
    CHECK(cache.files() == 2);  // the block and the lock
    CHECK((fs::status(cache.settings.folder).permissions() & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
}

TEST_CASE("a block of another key or other bytes is not taken", "[cache]") {
    const Cache cache;
    const WeightKey key = key_of(small);
    REQUIRE_FALSE(cache.keep(key, content(small, 1)));
    const std::string hash = cache.hash(content(small, 1));
    std::vector<std::byte> lent(small);
    CHECK(cache.cache.read(key, cache.hash(content(small, 2)), block_of(lent)));
    WeightKey other = key;
    other.layout_id = "cpu-v3-0123";
    CHECK(cache.cache.read(other, hash, block_of(lent)));
    // A file under another key's name says so in its header.
    for (const WeightKey& wrong : {other, key_of(small, 'b')}) {
        fs::copy_file(cache.file(key), cache.file(wrong));
        CHECK(cache.cache.read(wrong, hash, block_of(lent)));
        CHECK_FALSE(cache.cache.holds(wrong, hash));
    }
    std::vector<std::byte> larger(small + 1);
    CHECK(cache.cache.read(key, hash, block_of(larger)));
    // The hash given must be that of the block.
    std::vector<std::byte> memory = content(small, 3);
    CHECK(cache.cache.store(key_of(small, 'c'), hash, block_of(memory)));
    CHECK_FALSE(fs::exists(cache.file(key_of(small, 'c'))));
    CHECK_FALSE(cache.cache.read(key, hash, block_of(lent)));
}

TEST_CASE("a file cut off anywhere, or longer, is not taken", "[cache]") {
    const Cache cache;
    const WeightKey key = key_of(small);
    REQUIRE_FALSE(cache.keep(key, content(small, 1)));
    const std::string hash = cache.hash(content(small, 1));
    const std::string whole = bytes_of(cache.file(key));
    REQUIRE(whole.size() == weight_file_bytes(small));
    std::vector<std::byte> lent(small);
    std::vector<std::size_t> lengths{0, 1, 15, 16, 175, 176, 191, 192, 4095, 4096, 4097, whole.size() - 1};
    for (std::size_t length = 500; length < whole.size(); length += 997) lengths.push_back(length);
    for (const std::size_t length : lengths) {
        CAPTURE(length);
        write_file(cache.file(key), std::string_view(whole).substr(0, length));
        CHECK(cache.cache.read(key, hash, block_of(lent)));
    }
    write_file(cache.file(key), whole + "x");
    CHECK(cache.cache.read(key, hash, block_of(lent)));
    // Of the right length, but never written to the end.
    write_file(cache.file(key), whole.substr(0, 50'000) + std::string(whole.size() - 50'000, '\0'));
    CHECK(cache.cache.read(key, hash, block_of(lent)));
    write_file(cache.file(key), whole);
    CHECK_FALSE(cache.cache.read(key, hash, block_of(lent)));
}

TEST_CASE("a flipped bit anywhere is noticed", "[cache]") {
    const Cache cache;
    const WeightKey key = key_of(small);
    const std::vector<std::byte> right = content(small, 1);
    REQUIRE_FALSE(cache.keep(key, right));
    const std::string hash = cache.hash(right);
    const std::string whole = bytes_of(cache.file(key));
    std::vector<std::byte> lent(small);
    std::vector<std::size_t> places;
    for (std::size_t at = 0; at < 4096; ++at) places.push_back(at);  // all of the header
    for (std::size_t at = 4096; at < whole.size(); at += 499) places.push_back(at);
    places.push_back(whole.size() - 1);
    for (const std::size_t at : places) {
        std::string flipped = whole;
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
        write_file(cache.file(key), flipped);
        CAPTURE(at);
        REQUIRE(cache.cache.read(key, hash, block_of(lent)));
    }
}

TEST_CASE("a damaged file is replaced, memory behind copies receives nothing unchecked", "[cache]") {
    const Cache cache;
    const WeightKey key = key_of(several_chunks);
    std::vector<std::byte> right = content(several_chunks, 1);
    REQUIRE_FALSE(cache.keep(key, right));
    const std::string hash = cache.hash(right);
    std::string damaged = bytes_of(cache.file(key));
    damaged[damaged.size() - 5] ^= 1;
    write_file(cache.file(key), damaged);
    std::vector<std::byte> device(several_chunks);
    CHECK(cache.cache.read(key, hash, block_of(device, true)));
    for (std::size_t i = 0; i < several_chunks; ++i) {
        if (device[i] != std::byte{0} && device[i] != right[i]) FAIL("byte " << i << " was not checked");
    }
    // The header is whole, so only a caller who has read the rest knows.
    CHECK(cache.cache.holds(key, hash));
    REQUIRE_FALSE(cache.cache.store(key, hash, block_of(right), true));
    CHECK_FALSE(cache.cache.read(key, hash, block_of(device, true)));
    CHECK(device == right);
}

TEST_CASE("what is no file of ours is refused in words", "[cache]") {
    const Cache cache;
    const WeightKey key = key_of(small);
    std::vector<std::byte> memory = content(small, 1);
    const std::string hash = cache.hash(memory);
    REQUIRE_FALSE(cache.keep(key, memory));
    fs::rename(cache.file(key), cache.folder / "elsewhere");
    const auto refused = [&] {
        std::vector<std::byte> lent(small);
        CHECK(cache.cache.read(key, hash, block_of(lent)));
    };
    fs::create_directory(cache.file(key));
    refused();
    CHECK_THAT(cache.cache.store(key, hash, block_of(memory), true).value_or(""), Catch::Contains("is a folder"));
    fs::remove(cache.file(key));

    REQUIRE(::mkfifo(cache.file(key).c_str(), 0600) == 0);
    refused();  // without waiting for a writer
    fs::remove(cache.file(key));

    fs::create_symlink(cache.folder / "elsewhere", cache.file(key));
    refused();
    REQUIRE_FALSE(cache.cache.store(key, hash, block_of(memory)));  // replaces the link, not what it points to
    CHECK(fs::is_regular_file(fs::symlink_status(cache.file(key))));
    CHECK(fs::exists(cache.folder / "elsewhere"));

    fs::permissions(cache.settings.folder, fs::perms::others_write, fs::perm_options::add);
    refused();
    CHECK_THAT(cache.cache.store(key, hash, block_of(memory)).value_or(""), Catch::Contains("chmod go-w"));
    CHECK_THAT(usage_of(cache.settings).problem, Catch::Contains("chmod go-w"));
}

TEST_CASE("a folder that cannot be made, and limits, are said", "[cache]") {
    Cache cache;
    std::vector<std::byte> memory = content(small, 1);
    const std::string hash = cache.hash(memory);
    write_file(cache.folder / "file", "");
    CacheSettings settings = cache.settings;
    settings.folder = (cache.folder / "file").string();
    CHECK_THAT(WeightCache(settings).store(key_of(small), hash, block_of(memory)).value_or(""), Catch::Contains("not a folder"));
    settings.folder = (cache.folder / "file").string() + "/inside";
    CHECK(WeightCache(settings).store(key_of(small), hash, block_of(memory)));
    settings = cache.settings;
    settings.limit = small;  // the header does not fit
    CHECK_THAT(WeightCache(settings).store(key_of(small), hash, block_of(memory)).value_or(""), Catch::Contains("KESTREL_AB_CACHE_LIMIT"));

    settings = cache.settings;
    settings.minimum = small;
    CHECK(WeightCache(settings).serves(small));
    CHECK_FALSE(WeightCache(settings).serves(small - 1));
    settings.limit = 0;
    CHECK_FALSE(WeightCache(settings).serves(small));
    settings = cache.settings;
    settings.folder.clear();
    CHECK_FALSE(WeightCache(settings).serves(small));

    CHECK(reserve_of({0, std::uint64_t{20} << 30}) == std::uint64_t{1} << 30);
    CHECK(reserve_of({0, std::uint64_t{1} << 44}) == std::uint64_t{8} << 30);
}

TEST_CASE("a process that may not write large files goes on without", "[cache]") {
    const Cache cache;
    std::vector<std::byte> memory = content(several_chunks, 1);
    const std::string hash = cache.hash(memory);
    const int code = in_child([&] {
        const rlimit limit{1 << 20, 1 << 20};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const auto problem = WeightCache(cache.settings).store(key_of(several_chunks), hash, block_of(memory));
        return problem && problem->find("ulimit") != std::string::npos ? 7 : 8;
    });
    CHECK(code == 7);  // not killed by SIGXFSZ
    CHECK_FALSE(fs::exists(cache.file(key_of(several_chunks))));
}

TEST_CASE("the least recently used blocks make room", "[cache]") {
    const Cache cache(weight_file_bytes(small) * 5 / 2);
    const auto key = [](char digit) { return key_of(small, digit); };
    const auto later = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };  // than the file system's clock ticks
    REQUIRE_FALSE(cache.keep(key('a'), content(small, 1)));
    later();
    REQUIRE_FALSE(cache.keep(key('b'), content(small, 2)));
    later();
    std::vector<std::byte> lent(small);
    REQUIRE_FALSE(cache.cache.read(key('a'), cache.hash(content(small, 1)), block_of(lent)));  // now b is the older one
    later();
    REQUIRE_FALSE(cache.keep(key('c'), content(small, 3)));
    CHECK(fs::exists(cache.file(key('a'))));
    CHECK_FALSE(fs::exists(cache.file(key('b'))));
    CHECK(fs::exists(cache.file(key('c'))));
    const CacheUsage usage = usage_of(cache.settings);
    CHECK(usage.blocks == 2);
    CHECK(usage.bytes == 2 * weight_file_bytes(small));
    // Too large for the limit: nothing is given up for it.
    CHECK(cache.keep(key_of(3 * small, 'd'), content(3 * small, 4)));
    CHECK(usage_of(cache.settings).blocks == 2);
}

TEST_CASE("a writer that is killed leaves nothing that is taken, and its leftovers go", "[cache]") {
    const Cache cache;
    const WeightKey key = key_of(several_chunks);
    std::vector<std::byte> memory = content(several_chunks, 1);
    const std::string hash = cache.hash(memory);
    for (int chunks_before = 1; chunks_before <= 3; ++chunks_before) {
        const int code = in_child([&] {
            int seen = 0;
            const WeightCache dying(cache.settings, {1, [&] {
                                                         if (++seen == chunks_before) ::kill(::getpid(), SIGKILL);
                                                     }});
            return dying.store(key, hash, block_of(memory)) ? 1 : 0;
        });
        REQUIRE(code == -SIGKILL);
        CHECK_FALSE(fs::exists(cache.file(key)));
        CHECK(cache.files() == 2);  // the lock and the unfinished file, not one more each time
    }
    std::vector<std::byte> lent(several_chunks);
    CHECK(cache.cache.read(key, hash, block_of(lent)));
    REQUIRE_FALSE(cache.cache.store(key, hash, block_of(memory)));
    CHECK(cache.files() == 2);
    CHECK_FALSE(cache.cache.read(key, hash, block_of(lent)));
    CHECK(lent == memory);
}

TEST_CASE("writers and readers at the same time never see a wrong block", "[cache]") {
    const Cache cache;
    const WeightKey key = key_of(several_chunks);
    std::vector<std::byte> memory = content(several_chunks, 1);
    const std::string hash = cache.hash(memory);
    // Another process does the same; it begins before there are threads here, which it would not have.
    const pid_t other = ::fork();
    if (other == 0) {
        for (int i = 0; i < 5; ++i) (void)cache.cache.store(key, hash, block_of(memory), true);
        ::_exit(0);
    }
    std::atomic<int> stored{0};
    std::atomic<int> read{0};
    std::atomic<int> wrong{0};
    {
        std::vector<std::jthread> threads;
        for (int writer = 0; writer < 2; ++writer) {
            threads.emplace_back([&] {
                for (int i = 0; i < 5; ++i) stored += cache.cache.store(key, hash, block_of(memory), true) ? 0 : 1;
            });
        }
        for (int reader = 0; reader < 2; ++reader) {
            threads.emplace_back([&] {
                std::vector<std::byte> lent(several_chunks);
                for (int i = 0; i < 10; ++i) {
                    if (cache.cache.read(key, hash, block_of(lent))) continue;
                    ++read;
                    if (lent != memory) ++wrong;
                }
            });
        }
    }
    int status = -1;
    REQUIRE(::waitpid(other, &status, 0) == other);
    CHECK(status == 0);
    CHECK(wrong == 0);
    INFO(stored << " stored, " << read << " read");
    std::vector<std::byte> lent(several_chunks);
    if (cache.cache.read(key, hash, block_of(lent))) REQUIRE_FALSE(cache.cache.store(key, hash, block_of(memory)));
    CHECK_FALSE(cache.cache.read(key, hash, block_of(lent)));
    CHECK(lent == memory);
    CHECK(cache.files() == 2);
}
