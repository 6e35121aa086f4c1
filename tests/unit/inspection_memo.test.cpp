// When an earlier inspection may be believed.
#include "runner/session/inspection_memo.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>

#include "runner/session/weight_cache.hpp"
#include "tests/unit/identity_fixture.hpp"

using namespace kestrel;
using namespace kestrel::session;
using identity_test::ScratchFolder;
using identity_test::write_file;

namespace {

namespace fs = std::filesystem;

// Until files made before are older than memos ask for.
void wait_until_settled() {
    std::this_thread::sleep_for(std::chrono::milliseconds(2100));
}

void set_times_as_of(const fs::path& path, const platform::FileStamp& stamp) {
    const timespec time{stamp.modified_ns / 1'000'000'000, stamp.modified_ns % 1'000'000'000};
    const timespec both[2] = {time, time};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), both, 0) == 0);
}

MemoKey key_for(const std::string& model) {
    return {std::string(64, 'a'), {{"KESTREL_WEIGHTS", "q4_0"}}, model, "host", "cpu: any", look_at_model(model)};
}

const InspectionMemo memo{std::string(64, 'd'), "cpu-v2-1", 123456, std::string(32, 'e')};

}  // namespace

TEST_CASE("an inspection is remembered as long as nothing changes", "[cache][memo]") {
    const ScratchFolder folder;
    const std::string model = (folder / "model").string();
    fs::create_directories(model + "/sub");
    write_file(model + "/config.json", "{}");
    write_file(model + "/sub/model.safetensors", "weights");
    CHECK_THAT(look_at_model(model).problem, Catch::Contains("less than 2 s ago"));
    CHECK_FALSE(read_memo("anything", key_for(model)));
    wait_until_settled();

    CacheSettings settings;
    settings.folder = (folder / "cache").string();
    const WeightCache cache(settings);
    const MemoKey key = key_for(model);
    REQUIRE(key.files.problem.empty());
    REQUIRE(key.files.files.size() == 2);
    CHECK_FALSE(cache.find(key));
    REQUIRE_FALSE(cache.store(key, memo));
    CHECK(cache.find(key) == memo);
    CHECK(cache.find(key_for(model)) == memo);

    // Another question.
    MemoKey other = key;
    other.artifact[0] = 'b';
    CHECK_FALSE(cache.find(other));
    other = key;
    other.switches[0].value = "stored";
    CHECK_FALSE(cache.find(other));
    other = key;
    other.device = "cuda: another";
    CHECK_FALSE(cache.find(other));
    other = key;
    other.host = "elsewhere";
    CHECK_FALSE(cache.find(other));
}

TEST_CASE("a model that changed in any way is inspected again", "[cache][memo]") {
    const ScratchFolder folder;
    CacheSettings settings;
    settings.folder = (folder / "cache").string();
    const WeightCache cache(settings);
    struct Case {
        std::string name;
        std::function<void(const fs::path& model, const platform::FileStamp& before)> change;
    };
    const std::vector<Case> cases{
        {"same size, modification time put back",
         [](const fs::path& model, const platform::FileStamp& before) {
             write_file(model / "weights", "weighty");
             set_times_as_of(model / "weights", before);
             const auto now = platform::stamp_of((model / "weights").string());
             CHECK(now->modified_ns == before.modified_ns);
             CHECK(now->inode == before.inode);
             CHECK(now->size == before.size);
         }},
        {"another file under the name",
         [](const fs::path& model, const platform::FileStamp& before) {
             const fs::path other = model.parent_path() / "other";
             write_file(other, "weighty");
             set_times_as_of(other, before);
             fs::rename(other, model / "weights");
         }},
        {"one more file", [](const fs::path& model, const platform::FileStamp&) { write_file(model / "more", "more"); }},
        {"one file less", [](const fs::path& model, const platform::FileStamp&) { fs::remove(model / "config.json"); }},
        {"a longer file",
         [](const fs::path& model, const platform::FileStamp&) { std::ofstream(model / "weights", std::ios::app) << "!"; }},
    };
    for (const Case& one : cases) {
        fs::create_directories(folder / one.name);
        write_file(folder / one.name / "config.json", "{}");
        write_file(folder / one.name / "weights", "weights");
    }
    wait_until_settled();
    for (const Case& one : cases) {
        CAPTURE(one.name);
        const MemoKey key = key_for((folder / one.name).string());
        REQUIRE(key.files.files.size() == 2);
        REQUIRE_FALSE(cache.store(key, memo));
        one.change(folder / one.name, key.files.files[1].stamp);
        MemoKey now = key_for((folder / one.name).string());
        now.files.problem.clear();  // that the change is recent must not be what gives it away
        CHECK_FALSE(cache.find(now));
        now.files = key.files;
        CHECK(cache.find(now) == memo);
    }
}

TEST_CASE("directories that cannot be seen through are not remembered", "[cache][memo]") {
    const ScratchFolder folder;
    const std::string model = (folder / "model").string();
    fs::create_directories(model);
    CHECK_FALSE(look_at_model((folder / "absent").string()).problem.empty());
    SECTION("a link to a directory") {
        fs::create_directory_symlink(folder / "model", model + "/link");
        CHECK_THAT(look_at_model(model).problem, Catch::Contains("link to a directory"));
    }
    SECTION("a pipe") {
        REQUIRE(::mkfifo((model + "/pipe").c_str(), 0600) == 0);
        CHECK_THAT(look_at_model(model).problem, Catch::Contains("pipe is not a file"));
    }
    SECTION("a dangling link") {
        fs::create_symlink("nowhere", model + "/link");
        CHECK_THAT(look_at_model(model).problem, Catch::Contains("link is not a file"));
    }
}

TEST_CASE("a damaged memo is none", "[cache][memo]") {
    const ScratchFolder folder;
    const std::string model = std::string(KESTREL_FIXTURES) + "/qwen35/f32-4l";
    MemoKey key = key_for(model);
    key.files.problem.clear();  // in a fresh checkout the files may be young
    const std::string text = memo_text(key, memo);
    const std::string path = (folder / "memo").string();
    write_file(path, text);
    REQUIRE(read_memo(path, key) == memo);
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string flipped = text;
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 7));
        write_file(path, flipped);
        CAPTURE(at);
        REQUIRE_FALSE(read_memo(path, key));
    }
    for (std::size_t length = 0; length < text.size(); length += 7) {
        write_file(path, text.substr(0, length));
        REQUIRE_FALSE(read_memo(path, key));
    }
}

TEST_CASE("old memos make room", "[cache][memo]") {
    const ScratchFolder folder;
    CacheSettings settings;
    settings.folder = (folder / "cache").string();
    const WeightCache cache(settings);
    MemoKey key = key_for(std::string(KESTREL_FIXTURES) + "/qwen35/f32-4l");
    for (int i = 0; i < 300; ++i) {
        key.device = std::to_string(i);
        REQUIRE_FALSE(cache.store(key, memo));
    }
    const auto files = std::distance(fs::directory_iterator(settings.folder), fs::directory_iterator());
    CHECK(files == 257);  // the lock too
    key.files.problem.clear();
    CHECK(cache.find(key) == memo);
}
