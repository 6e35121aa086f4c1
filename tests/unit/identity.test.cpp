// Hashes, the manifest, and the one place in which two builds differ.
#include <catch2/catch.hpp>
#include <filesystem>
#include <utility>

#include "runner/identity/command_flags.hpp"
#include "runner/identity/difference.hpp"
#include "runner/identity/elf_note.hpp"
#include "runner/identity/manifest.hpp"
#include "runner/identity/sha256.hpp"
#include "runner/record/error.hpp"
#include "tests/unit/identity_fixture.hpp"

using namespace kestrel;
using namespace identity_test;

namespace {

void add_flag(Manifest& manifest, const std::string& flag) {
    for (ManifestUnit& unit : manifest.units) unit.argv.insert(unit.argv.begin() + 1, flag);
}

Difference difference_of(const Manifest& base, const Manifest& candidate) {
    return compare(base, {}, candidate, {});
}

// The refusal's text; fails the test if there is none.
std::string refusal(const Difference& difference) {
    try {
        (void)the_one_place(difference);
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::not_comparable);
        return error.what();
    }
    FAIL("not refused");
    return {};
}

}  // namespace

TEST_CASE("SHA-256 agrees with published values", "[identity]") {
    CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");

    const std::string million(1000000, 'a');
    const std::string expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    ScratchFolder folder;
    write_file(folder / "a", million);
    CHECK(sha256_file(folder / "a") == expected);

    Sha256 digest;
    digest.update(std::string_view(million).substr(0, 999));
    Sha256 moved = std::move(digest);
    moved.update(std::string_view(million).substr(999));
    CHECK(moved.finish_hex() == expected);
    moved.update("abc");
    CHECK(moved.finish_hex() == sha256_hex("abc"));
    CHECK_THROWS_AS(sha256_file(folder / "absent"), Error);
    CHECK_THROWS_AS(sha256_file(folder / "."), Error);
}

TEST_CASE("a manifest is parsed whole or refused", "[identity]") {
    const Manifest manifest = parse_manifest(small_manifest_json, "x.so");
    CHECK(manifest.engine == "kestrel_cpu");
    REQUIRE(manifest.units.size() == 1);
    CHECK(manifest.units[0].object_sha256 == hash('1'));
    CHECK(manifest.files.at("engine/cpu/ops.cpp") == hash('2'));
    CHECK(manifest.tools.at("c++").version == "c++ 12");

    const auto with = [](const std::string& from, const std::string& to) {
        std::string text = small_manifest_json;
        text.replace(text.find(from), from.size(), to);
        return text;
    };
    const std::vector<std::string> damaged{"",
                                           "[]",
                                           "null",
                                           small_manifest_json.substr(0, small_manifest_json.size() / 2),
                                           with("\"format\":1", "\"format\":2"),
                                           with("\"format\":1", "\"format\":\"1\""),
                                           with("\"engine\":", "\"motor\":"),
                                           with("\"units\":[", "\"units\":[7,"),
                                           with(hash('1'), "12"),
                                           with(hash('2'), std::string(64, 'g')),
                                           with("\"files\":{\"engine/cpu/ops.cpp\"", "\"files\":{\"engine/other.cpp\""),
                                           with("\"argv\":[\"c++\",\"-shared\"]", "\"argv\":[]")};
    for (const std::string& text : damaged) {
        INFO(text);
        try {
            (void)parse_manifest(text, "x.so");
            FAIL("accepted");
        } catch (const Error& error) {
            CHECK(error.code() == ExitCode::not_comparable);
            CHECK(std::string(error.what()).find("x.so") != std::string::npos);
        }
    }
}

TEST_CASE("equal builds have no place", "[identity]") {
    const Difference difference = difference_of(two_units(), two_units());
    CHECK(the_one_place(difference).kind == PlaceKind::none);
    CHECK_FALSE(no_effect(difference));
    CHECK_NOTHROW(require_explained(difference, hash('a'), hash('a')));
    CHECK_THROWS_AS(require_explained(difference, hash('a'), hash('b')), Error);
}

TEST_CASE("a define for all units is one place", "[identity]") {
    Manifest candidate = two_units();
    add_flag(candidate, "-DVLLM_GEMV_AB_BASELINE=1");
    candidate.units[1].object_sha256 = hash('c');
    candidate.files["engine/baseline.inc"] = hash('9');  // read because of the define

    const Difference difference = difference_of(two_units(), candidate);
    const Place place = the_one_place(difference);
    CHECK(place.kind == PlaceKind::define);
    CHECK(place.name == "VLLM_GEMV_AB_BASELINE");
    CHECK(place.base == "(unset)");
    CHECK(place.candidate == "1");
    CHECK(place.changed_objects == std::vector<std::string>{"engine/b.cpp"});
    CHECK(difference.consequences == std::vector<std::string>{"+ engine/baseline.inc"});
    CHECK_FALSE(no_effect(difference));
    CHECK(describe(place) == "define VLLM_GEMV_AB_BASELINE: (unset) -> 1");
    CHECK_NOTHROW(require_explained(difference, hash('a'), hash('b')));

    const Place back = the_one_place(difference_of(candidate, two_units()));
    CHECK(back.base == "1");
    CHECK(back.candidate == "(unset)");
}

TEST_CASE("a define that changes no object has no effect but is the place", "[identity]") {
    Manifest candidate = two_units();
    add_flag(candidate, "-DUNUSED=1");
    const Difference difference = difference_of(two_units(), candidate);
    CHECK(the_one_place(difference).name == "UNUSED");
    CHECK(no_effect(difference));
}

TEST_CASE("two places are refused and both named", "[identity]") {
    Manifest candidate = two_units();
    add_flag(candidate, "-DTILE=8");
    candidate.files["engine/c.hpp"] = hash('9');
    const std::string text = refusal(difference_of(two_units(), candidate));
    CHECK(text.find("2 places") != std::string::npos);
    CHECK(text.find("\n  define TILE: (unset) -> 8\n") != std::string::npos);
    CHECK(text.find("\n  source file engine/c.hpp: 333333333333 -> 999999999999\n") != std::string::npos);
}

TEST_CASE("one define with two new values is two places", "[identity]") {
    Manifest candidate = two_units();
    candidate.units[0].argv.insert(candidate.units[0].argv.begin() + 1, "-DTILE=8");
    candidate.units[1].argv.insert(candidate.units[1].argv.begin() + 1, "-DTILE=16");
    CHECK(difference_of(two_units(), candidate).places.size() == 2);
}

TEST_CASE("flags, files, link inputs and tools are places", "[identity]") {
    Manifest candidate = two_units();
    PlaceKind kind = PlaceKind::flag;
    std::string name;
    bool link_or_tools = false;
    SECTION("a compile flag with another value") {
        for (ManifestUnit& unit : candidate.units) unit.argv[2] = "-O2";
        name = "-O";
    }
    SECTION("a flag and its negation") {
        Manifest base = two_units();
        add_flag(base, "-funroll-loops");
        add_flag(candidate, "-fno-unroll-loops");
        const Place place = the_one_place(difference_of(base, candidate));
        CHECK(place.name == "-funroll-loops");
        CHECK(place.candidate == "-fno-unroll-loops");
        return;
    }
    SECTION("the order of flags") {
        std::swap(candidate.units[0].argv[1], candidate.units[0].argv[2]);
        name = "order of flags";
    }
    SECTION("a flag that compiler and linker share") {
        add_flag(candidate, "-flto");
        candidate.link_argv.emplace_back("-flto");
        name = "-flto";
    }
    SECTION("a link flag") {
        candidate.link_argv.emplace_back("-Wl,--gc-sections");
        name = "link -Wl,--gc-sections";
        link_or_tools = true;
    }
    SECTION("the order of objects") {
        std::swap(candidate.units[0], candidate.units[1]);
        name = "link order of objects";
        link_or_tools = true;
    }
    SECTION("a source file, with a system header that it newly includes") {
        candidate.files["engine/c.hpp"] = hash('9');
        candidate.files["/usr/include/y.h"] = hash('9');
        kind = PlaceKind::source_file;
        name = "engine/c.hpp";
    }
    SECTION("a link input") {
        candidate.link_inputs["/usr/lib/libgcc.a"] = hash('9');
        kind = PlaceKind::source_file;
        name = "link input /usr/lib/libgcc.a";
        link_or_tools = true;
    }
    SECTION("a tool") {
        candidate.tools["ld"].sha256 = hash('9');
        name = "tool ld";
        link_or_tools = true;
    }
    const Difference difference = difference_of(two_units(), candidate);
    const Place place = the_one_place(difference);
    CHECK(place.kind == kind);
    CHECK(place.name == name);
    CHECK(difference.link_or_tools == link_or_tools);
    CHECK(no_effect(difference) == !link_or_tools);
}

TEST_CASE("an edited source together with a new project file is two places", "[identity]") {
    Manifest candidate = two_units();
    candidate.files["engine/a.cpp"] = hash('9');
    candidate.files["engine/new.hpp"] = hash('9');
    CHECK(difference_of(two_units(), candidate).places.size() == 2);
}

TEST_CASE("a unit added is a place", "[identity]") {
    Manifest candidate = two_units();
    candidate.units.push_back({"engine/d.cpp", {"c++", "-c", "./engine/d.cpp"}, hash('d')});
    candidate.files["engine/d.cpp"] = hash('d');
    const Difference difference = difference_of(two_units(), candidate);
    CHECK(the_one_place(difference).name == "engine/d.cpp");
    CHECK(difference.added_or_removed_units == std::vector<std::string>{"+ engine/d.cpp"});
    CHECK_FALSE(no_effect(difference));
}

TEST_CASE("objects that differ without a cause are refused", "[identity]") {
    Manifest candidate = two_units();
    candidate.units[0].object_sha256 = hash('c');
    CHECK(refusal(difference_of(two_units(), candidate)).find("engine/a.cpp") != std::string::npos);
    // A runtime switch does not explain them either.
    CHECK(refusal(compare(two_units(), {}, candidate, {{"S", "1"}})).find("engine/a.cpp") != std::string::npos);
}

TEST_CASE("a runtime switch is a place, and explains no difference in bytes", "[identity]") {
    const Difference difference = compare(two_units(), {{"OTHER", "1"}}, two_units(), {{"VLLM_CUDA_GDN_DELTA", "ref"}, {"OTHER", "1"}});
    const Place place = the_one_place(difference);
    CHECK(place.kind == PlaceKind::runtime_switch);
    CHECK(place.name == "VLLM_CUDA_GDN_DELTA");
    CHECK(place.base == "(unset)");
    CHECK(place.candidate == "ref");
    CHECK_FALSE(no_effect(difference));
    CHECK_NOTHROW(require_explained(difference, hash('a'), hash('a')));
    CHECK_THROWS_AS(require_explained(difference, hash('a'), hash('b')), Error);

    Manifest candidate = two_units();
    add_flag(candidate, "-DTILE=8");
    CHECK(compare(two_units(), {}, candidate, {{"S", "1"}}).places.size() == 2);
    CHECK_THROWS_AS(compare(two_units(), {{"S", "1"}, {"S", "2"}}, two_units(), {}), Error);
}

TEST_CASE("commands are taken apart as a compiler reads them", "[identity]") {
    const CommandFlags flags =
        command_flags({"c++", "-D", "A", "-DB=1=2", "-DC=1", "-UC", "-DB=3", "-isystem", "/x", "-c", "./engine/a.cpp"}, "engine/a.cpp");
    CHECK(flags.defines == std::map<std::string, std::string>{{"A", "1"}, {"B", "3"}, {"C", "(undefined)"}});
    CHECK(flags.others == std::vector<std::string>{"-isystem /x"});
    CHECK(flag_changes({"-a", "-O2", "-b"}, {"-b", "-O3", "-a"}).size() == 2);  // the level, and the order of the others
}

TEST_CASE("the two built variants differ in the define alone", "[identity]") {
    const std::filesystem::path folder = KESTREL_LIB_DIR;
    const std::filesystem::path base_path = folder / "libkestrel_cpu.so";
    const std::filesystem::path candidate_path = folder / "libkestrel_cpu_gemv_baseline.so";
    if (!std::filesystem::exists(base_path) || !std::filesystem::exists(candidate_path)) {
        WARN("not checked: the engine variants are not built in " << folder);
        return;
    }
    const EngineLibrary base = read_engine_library(base_path);
    const EngineLibrary candidate = read_engine_library(candidate_path);
    CHECK_NOTHROW(require_self_contained(base, base_path.string()));
    CHECK(base.soname == "libkestrel_cpu.so");
    CHECK(candidate.soname == base.soname);

    const Difference difference = difference_of(parse_manifest(base.manifest_json), parse_manifest(candidate.manifest_json));
    const Place place = the_one_place(difference);
    CHECK(place.kind == PlaceKind::define);
    CHECK(place.name == "VLLM_GEMV_AB_BASELINE");
    CHECK(place.candidate == "1");
    CHECK_FALSE(place.changed_objects.empty());
    CHECK_FALSE(no_effect(difference));
}
