// Reading libraries that may be hostile, and keeping them under their hash.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "runner/identity/artifact_store.hpp"
#include "runner/identity/elf_note.hpp"
#include "runner/identity/sha256.hpp"
#include "runner/record/error.hpp"
#include "tests/unit/identity_fixture.hpp"

using namespace kestrel;
using namespace identity_test;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> system_libraries{"libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"};

std::string good_library() {
    return tiny_library(manifest_note(small_manifest_json), system_libraries);
}

// True if the bytes are read; false if they are refused the way they should be. Anything else ends the test.
bool is_read(std::string_view bytes) {
    try {
        (void)parse_engine_library(bytes, "x.so");
        return true;
    } catch (const Error& error) {
        REQUIRE(error.code() == ExitCode::not_comparable);
        return false;
    }
}

template <typename Call>
ExitCode code_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    return ExitCode::pass;
}

std::string contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct stat status_of(const fs::path& path) {
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status;
}

std::size_t entries(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a library tells its manifest and dependencies without being loaded", "[identity]") {
    const std::string build_id = note(std::string_view("GNU\0", 4), 3, "12345678901234567890");
    const EngineLibrary library =
        parse_engine_library(tiny_library(build_id + manifest_note(small_manifest_json), system_libraries), "x.so");
    CHECK(library.manifest_json == small_manifest_json);
    CHECK(library.soname == "libkestrel_cpu.so");
    CHECK(library.needed == system_libraries);
    CHECK(library.run_path.empty());
    CHECK_NOTHROW(require_self_contained(library, "x.so"));
}

TEST_CASE("libraries without exactly one manifest are refused", "[identity]") {
    const std::string one = manifest_note("{}");
    CHECK(is_read(tiny_library(one, {})));
    CHECK_FALSE(is_read(tiny_library("", {})));
    CHECK_FALSE(is_read(tiny_library(one + one, {})));
    CHECK_FALSE(is_read(tiny_library(note(std::string_view("kestrel\0", 8), 2, "{}"), {})));
    CHECK_FALSE(is_read(tiny_library(note(std::string_view("other\0", 6), 1, "{}"), {})));
    CHECK_FALSE(is_read("#!/bin/sh\n"));
    CHECK_FALSE(is_read(""));
}

TEST_CASE("every cut and every corrupted field is refused or harmless", "[identity]") {
    const std::string good = good_library();
    REQUIRE(is_read(good));
    for (std::size_t size = 0; size < good.size(); ++size) {
        INFO("cut to " << size);
        REQUIRE_FALSE(is_read(std::string(good, 0, size)));
    }

    // Extreme values in every aligned 8, 4 and 2 bytes of the headers, the notes' heads and the dynamic table.
    std::size_t refused = 0;
    for (std::size_t at = 0; at + 8 <= good.size(); at += 2) {
        for (const std::uint64_t value : {~0ULL, 1ULL << 63U, 0x7fffffffffffffffULL, 0xfffffffffffffff0ULL, 0ULL}) {
            std::string bytes = good;
            put(bytes, at, value);
            refused += is_read(bytes) ? 0 : 1;
            bytes = good;
            put(bytes, at, static_cast<std::uint32_t>(value));
            refused += is_read(bytes) ? 0 : 1;
        }
    }
    CHECK(refused > 100);

    std::mt19937_64 random(20240607);
    for (int trial = 0; trial < 20000; ++trial) {
        std::string bytes = good;
        for (int change = 0; change < 4; ++change) bytes[random() % 400] = static_cast<char>(random());
        (void)is_read(bytes);
    }
}

TEST_CASE("engine code in a second library is refused", "[identity]") {
    const auto check = [](const std::string& needed, const std::string& run_path) {
        const EngineLibrary library = parse_engine_library(tiny_library(manifest_note("{}"), {"libc.so.6", needed}, run_path), "x.so");
        return code_of([&] { require_self_contained(library, "x.so"); });
    };
    CHECK(check("libm.so.6", "") == ExitCode::pass);
    CHECK(check("libm.so.6", "::::") == ExitCode::pass);
    CHECK(check("libkern.so", "") == ExitCode::not_comparable);
    CHECK(check("libcudart.so.13", "") == ExitCode::not_comparable);
    CHECK(check("libmine.so.6", "") == ExitCode::not_comparable);
    CHECK(check("./libm.so.6", "") == ExitCode::not_comparable);
    CHECK(check("libm.so/../libkern.so", "") == ExitCode::not_comparable);
    CHECK(check("libm.so.6", "$ORIGIN") == ExitCode::not_comparable);
}

TEST_CASE("an artifact is copied under its hash, once", "[identity]") {
    ScratchFolder folder;
    const fs::path store = folder / "store";
    const std::string bytes = good_library();
    write_file(folder / "engine.so", bytes);

    const Artifact artifact = register_artifact(folder / "engine.so", store);
    CHECK(artifact.sha256 == sha256_hex(bytes));
    CHECK(artifact.bytes == static_cast<std::int64_t>(bytes.size()));
    CHECK(artifact.engine_name == "kestrel_cpu");
    CHECK(artifact.manifest_json == small_manifest_json);
    CHECK(artifact.manifest_sha256 == sha256_hex(small_manifest_json));
    CHECK(fs::path(artifact.stored_path) == store / (artifact.sha256 + ".so"));
    CHECK(contents(artifact.stored_path) == bytes);
    const struct stat first = status_of(artifact.stored_path);
    CHECK((first.st_mode & 0777U) == 0444U);

    CHECK(register_artifact(folder / "engine.so", store).sha256 == artifact.sha256);
    CHECK(status_of(artifact.stored_path).st_ino == first.st_ino);
    CHECK(entries(store) == 1);
    CHECK_NOTHROW(verify_unchanged(artifact));
}

TEST_CASE("a damaged stored copy is reported, set aside and replaced", "[identity]") {
    ScratchFolder folder;
    write_file(folder / "engine.so", good_library());
    const Artifact artifact = register_artifact(folder / "engine.so", folder / "store");
    fs::permissions(artifact.stored_path, fs::perms::owner_all);
    write_file(artifact.stored_path, "damaged");

    try {
        verify_unchanged(artifact);
        FAIL("not noticed");
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::storage);
        CHECK(std::string(error.what()).find(artifact.sha256) != std::string::npos);
        CHECK(std::string(error.what()).find(sha256_hex("damaged")) != std::string::npos);
    }
    CHECK(code_of([&] { (void)register_artifact(folder / "engine.so", folder / "store"); }) == ExitCode::storage);
    CHECK(contents(artifact.stored_path + ".damaged") == "damaged");
    CHECK_NOTHROW(verify_unchanged(artifact));
    CHECK(code_of([&] { (void)register_artifact(folder / "engine.so", folder / "store"); }) == ExitCode::pass);

    fs::remove(artifact.stored_path);
    CHECK(code_of([&] { verify_unchanged(artifact); }) == ExitCode::storage);
}

TEST_CASE("what is no engine library is not stored", "[identity]") {
    ScratchFolder folder;
    const fs::path store = folder / "store";
    const auto code = [&](const std::string& name) { return code_of([&] { (void)register_artifact(folder / name, store); }); };
    write_file(folder / "text.so", "not a library");
    write_file(folder / "other.so", tiny_library(manifest_note("{}"), {}));
    write_file(folder / "split.so", tiny_library(manifest_note(small_manifest_json), {"libkern.so"}));
    CHECK(code("text.so") == ExitCode::not_comparable);
    CHECK(code("other.so") == ExitCode::not_comparable);
    CHECK(code("split.so") == ExitCode::not_comparable);
    CHECK(code("absent.so") == ExitCode::usage);
    CHECK(code(".") == ExitCode::usage);
    REQUIRE(::mkfifo((folder / "pipe.so").c_str(), 0600) == 0);
    CHECK(code("pipe.so") == ExitCode::usage);
    CHECK(entries(store) == 0);

    write_file(folder / "file", "");
    CHECK(code_of([&] { (void)register_artifact(folder / "text.so", folder / "file"); }) == ExitCode::storage);
}

TEST_CASE("a byte copy has the same bytes under another inode", "[identity]") {
    ScratchFolder folder;
    write_file(folder / "base.so", good_library());
    make_byte_copy(folder / "base.so", folder / "control.so");
    CHECK(contents(folder / "control.so") == contents(folder / "base.so"));
    const ino_t first = status_of(folder / "control.so").st_ino;
    CHECK(first != status_of(folder / "base.so").st_ino);
    CHECK((status_of(folder / "control.so").st_mode & 0777U) == 0444U);

    make_byte_copy(folder / "base.so", folder / "control.so");  // replaces, never rewrites
    CHECK(entries(folder / ".") == 2);
    CHECK(code_of([&] { make_byte_copy(folder / "absent.so", folder / "c.so"); }) == ExitCode::usage);
}

TEST_CASE("the commit of a library's folder is recorded, and git may be absent", "[identity]") {
    ScratchFolder folder;
    write_file(folder / "engine.so", good_library());
    const std::string git = "git -c user.name=t -c user.email=t@example.org -C '" + (folder / ".").string() + "' ";
    const bool has_git = std::system((git + "init -q && " + git + "add engine.so && " + git + "commit -q -m t").c_str()) == 0;
    if (has_git) {
        const Artifact clean = register_artifact(folder / "engine.so", folder / "store");
        CHECK(clean.commit.size() == 40);
        CHECK_FALSE(clean.dirty);
        write_file(folder / "engine.so", tiny_library(manifest_note(small_manifest_json), {}));
        CHECK(register_artifact(folder / "engine.so", folder / "store").dirty);
    } else {
        WARN("not checked: git is not installed");
    }

    const std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
    ::setenv("PATH", (folder / "nothing").c_str(), 1);
    const Artifact artifact = register_artifact(folder / "engine.so", folder / "store");
    ::setenv("PATH", path.c_str(), 1);
    CHECK(artifact.commit.empty());
    CHECK_FALSE(artifact.dirty);
}
