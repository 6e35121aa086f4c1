// The state after a session's context, on its way through a file.
#include "runner/session/context.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <vector>

#include "runner/identity/sha256.hpp"
#include "runner/plugin/engine_client.hpp"
#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "tests/unit/identity_fixture.hpp"

using namespace kestrel;
using namespace kestrel::session;
using identity_test::ScratchFolder;
using identity_test::write_file;

namespace {

namespace fs = std::filesystem;

std::string hash_of(const std::vector<std::byte>& bytes) {
    return sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::vector<std::byte> some_state() {
    std::vector<std::byte> state(100'000);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] = static_cast<std::byte>(i * i >> 3U);
    return state;
}

// The error of `body`: its code and text.
template <class Body>
std::pair<ExitCode, std::string> error_of(const Body& body) {
    try {
        body();
    } catch (const Error& error) {
        return {error.code(), error.what()};
    }
    return {ExitCode::pass, ""};
}

bool says(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

plugin::Engine open_engine(const plugin::EngineLibrary& library) {
    return library.open({std::string(KESTREL_CONFIGS) + "/mini-64l.toml", std::vector<SwitchSetting>{}, 2, 16});
}

// What a window would show: the tokens chosen, the last logits and the state.
std::string outputs_of(plugin::Engine& engine, int from, int to) {
    std::string all;
    for (std::int32_t token = from; token < to; ++token) all += std::to_string(engine.decode(7 * token + 1)) + " ";
    std::vector<float> logits(static_cast<std::size_t>(engine.info().vocab));
    engine.logits(logits);
    all.append(reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float));
    return all + hash_of(engine.save_state());
}

nlohmann::json saved(const std::string& base, const std::string& candidate) {
    return {{"contexts",
             {{{"role", "base"}, {"path", "/b"}, {"sha256", base}, {"bytes", 10}, {"seconds", 1.25}},
              {{"role", "candidate"}, {"path", "/c"}, {"sha256", candidate}, {"bytes", 12}, {"seconds", 1.5}}}}};
}

}  // namespace

TEST_CASE("a context's state comes back from its file", "[context]") {
    const ScratchFolder folder;
    const std::string path = (folder / "context0.state").string();
    const std::vector<std::byte> state = some_state();
    write_context(path, state);
    CHECK(fs::file_size(path) == state.size());
    CHECK(read_context(path, hash_of(state)) == state);
    CHECK(std::distance(fs::directory_iterator(fs::path(path).parent_path()), {}) == 1);  // no unfinished file
}

TEST_CASE("an engine goes on from a context's file as if it had decoded the context", "[context]") {
    const ScratchFolder folder;
    const std::string path = (folder / "context0.state").string();
    // Two copies, as base and candidate are; nothing passes between them but the file.
    const std::string copy = (folder / "copy.so").string();
    fs::copy_file(KESTREL_ENGINE_LIB, copy);
    const plugin::EngineLibrary first(KESTREL_ENGINE_LIB);
    const plugin::EngineLibrary second(copy);
    plugin::Engine straight = open_engine(first);
    for (std::int32_t token = 0; token < 9; ++token) (void)straight.decode(7 * token + 1);
    const std::vector<std::byte> state = straight.save_state();
    write_context(path, state);
    const std::string expected = outputs_of(straight, 9, 16);

    plugin::Engine restored = open_engine(second);
    for (int window = 0; window < 2; ++window) {
        restored.restore_state(read_context(path, hash_of(state)));
        CHECK(outputs_of(restored, 9, 16) == expected);
    }
    restored.reset();
    CHECK(outputs_of(restored, 9, 16) != expected);  // the context matters
}

TEST_CASE("a context's file that is not what was written is refused", "[context]") {
    const ScratchFolder folder;
    const std::string path = (folder / "context0.state").string();
    const std::vector<std::byte> state = some_state();
    const std::string hash = hash_of(state);
    const auto refused = [&] {
        const auto [code, text] = error_of([&] { (void)read_context(path, hash); });
        CHECK(code == ExitCode::invalid);
        CHECK(says(text, path));
        CHECK(says(text, "run again"));
        return text;
    };
    CHECK(says(refused(), "No such file"));
    std::string bytes(reinterpret_cast<const char*>(state.data()), state.size());
    bytes[5000] = static_cast<char>(bytes[5000] ^ 1);
    write_file(path, bytes);
    CHECK(says(refused(), "expected SHA-256 " + hash));
    write_file(path, bytes.substr(0, 99'999));
    CHECK(says(refused(), "99999 bytes"));
    write_file(path, "");
    CHECK(says(refused(), "damaged"));
    fs::remove(path);
    fs::create_directory(path);
    CHECK(says(refused(), "not a regular file"));
}

TEST_CASE("a context's state that cannot be written is said to be so", "[context]") {
    const ScratchFolder folder;
    const std::string absent = (folder / "absent" / "context0.state").string();
    const auto [code, text] = error_of([&] { write_context(absent, some_state()); });
    CHECK(code == ExitCode::storage);
    CHECK(says(text, absent));
    CHECK(says(text, "100000 bytes"));
    CHECK(says(text, "make room"));

    // A file that this process may not write, which would otherwise end it with a signal.
    const std::string path = (folder / "context0.state").string();
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit small = before;
    small.rlim_cur = 4096;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const auto [limited, why] = error_of([&] { write_context(path, some_state()); });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(limited == ExitCode::storage);
    CHECK(says(why, path));
    CHECK(says(why, "ulimit"));
    CHECK_FALSE(fs::exists(path));
}

TEST_CASE("states after a context are outputs", "[context]") {
    const ContextStates same = context_states(saved("aa", "aa"));
    const ContextStates other = context_states(saved("aa", "bb"));
    CHECK(same[1].path == "/b");  // control is a copy of base
    CHECK(other[1].sha256 == "aa");
    CHECK(context_text(40, same) ==
          "40 tokens, decoded by base in 1.2 s and by candidate in 1.5 s; the states after them are bit-identical, one file of 10 bytes");
    CHECK(says(context_text(40, other), "differ, files of 10 and 12 bytes"));

    Plan plan;
    plan.position = 40;
    const auto equal_under = [&](const std::string& rule, const ContextStates& states) {
        plan.output_rule = rule;
        Evidence evidence;
        evidence.outputs_equal = true;
        compare_contexts(plan, states, evidence);
        if (!evidence.outputs_equal) {
            CHECK(says(evidence.output_text, "context of 40 tokens: SHA-256 aa of base, bb of candidate"));
        }
        return evidence.outputs_equal;
    };
    CHECK(equal_under("bit-identical", same));
    CHECK_FALSE(equal_under("bit-identical", other));
    CHECK(equal_under("tolerance:1e-3", other));
    // Nothing is taken for equal because the contexts are.
    Evidence evidence;
    compare_contexts(plan, same, evidence);
    CHECK_FALSE(evidence.outputs_equal);
}
