// Memory, state, switches and the interface's own rules.
#include <pthread.h>
#include <time.h>

#include <cmath>
#include <set>
#include <thread>

#include "tests/engine/engine_under_test.hpp"

using namespace kestrel::test;

namespace {

// Sets or clears a variable for a scope.
class Environment {
  public:
    Environment(const char* name, const char* value) : name_(name) {
        if (value != nullptr) {
            setenv(name, value, 1);
        } else {
            unsetenv(name);
        }
    }
    ~Environment() { unsetenv(name_); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

  private:
    const char* name_;
};

std::string effective(const Engine& engine) {
    const char* value = nullptr;
    engine.check(capability<kestrel_switches>(engine.api(), KESTREL_CAP_SWITCHES).effective(engine.handle(), 0, &value));
    return value;
}

struct AlignedMemory {
    explicit AlignedMemory(std::size_t bytes, int fill) : size((bytes + 63) / 64 * 64), data(std::aligned_alloc(64, size)) {
        std::memset(data, fill, size);
    }
    ~AlignedMemory() { std::free(data); }
    AlignedMemory(const AlignedMemory&) = delete;
    AlignedMemory& operator=(const AlignedMemory&) = delete;
    std::size_t size;
    void* data;
};

kestrel_memory_needs needs_of(const Args& args) {
    kestrel_memory_needs needs{};
    needs.struct_size = sizeof needs;
    REQUIRE(capability<kestrel_borrow>(engine_api(), KESTREL_CAP_BORROW).needs(&args.args, &needs) == KESTREL_OK);
    return needs;
}

}  // namespace

TEST_CASE("the interface: versions, identity, capabilities", "[engine][abi]") {
    const auto& api = engine_api();
    CHECK(api.struct_size == sizeof(kestrel_engine_api));
    CHECK(api.abi_version == KESTREL_ABI_VERSION);
    CHECK(std::string(api.engine_name) == "kestrel_cpu");
    std::size_t bytes = 0;
    CHECK(api.manifest(&bytes) != nullptr);
    CHECK(bytes > 0);
    CHECK(api.capability(KESTREL_CAP_ALLOCATE) == nullptr);
    CHECK(api.capability(KESTREL_CAP_GRAPH) == nullptr);
    CHECK(api.capability("borrow.v2") == nullptr);
    CHECK(api.capability(nullptr) == nullptr);
    void* handle = dlopen(setting("KESTREL_ENGINE_LIB", KESTREL_ENGINE_LIB).c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto entry = reinterpret_cast<kestrel_engine_entry_fn>(dlsym(handle, KESTREL_ENTRY_SYMBOL));
    CHECK(entry(0) == nullptr);
    CHECK(entry(2) == nullptr);
    CHECK(entry(1) == &api);
}

TEST_CASE("info of the small description", "[engine][abi]") {
    Args args(description("mini-64l"));
    Engine engine(args.threads(2));
    const auto info = engine.info();
    CHECK(info.layers == 64);
    CHECK(info.gdn_layers == 48);
    CHECK(info.attention_layers == 16);
    CHECK(info.threads == 2);
    CHECK(info.max_positions == 96);
    CHECK(info.state_bytes == std::uint64_t{48} * 6 * 128 * 128 * 4);
}

TEST_CASE("wrong calls change nothing and say why", "[engine][abi]") {
    Args args(checkpoint("f32-4l").string());
    args.args.max_positions = 3;
    Engine engine(args);
    const auto& api = engine_api();
    std::vector<float> logits(engine.info().vocab);
    CHECK(api.logits(engine.handle(), logits.data(), logits.size()) == KESTREL_BAD_ARGUMENT);  // nothing decoded yet
    std::int32_t next = 0;
    engine.decode(1);
    const auto before = engine.save();
    CHECK(api.decode(engine.handle(), -1, &next) == KESTREL_BAD_ARGUMENT);
    CHECK(api.decode(engine.handle(), 256, &next) == KESTREL_BAD_ARGUMENT);
    CHECK(std::string(api.last_error()).find("256") != std::string::npos);
    CHECK(api.decode(engine.handle(), 1, nullptr) == KESTREL_BAD_ARGUMENT);
    CHECK(api.decode(nullptr, 1, &next) == KESTREL_BAD_ARGUMENT);
    CHECK(api.logits(engine.handle(), logits.data(), logits.size() - 1) == KESTREL_BAD_ARGUMENT);
    CHECK(same_bits(engine.save(), before));
    engine.decode(2);
    CHECK(std::string(api.last_error()).empty());
    engine.decode(3);
    CHECK(api.decode(engine.handle(), 4, &next) == KESTREL_BAD_ARGUMENT);  // the cache is full
    engine.reset();
    engine.decode(1);
    CHECK(same_bits(engine.save(), before));

    const auto refused = [&](kestrel_open_args changed) {
        auto* out = reinterpret_cast<kestrel_engine*>(&next);
        const kestrel_status status = api.open(&changed, &out);
        CHECK(out == nullptr);
        return status;
    };
    kestrel_open_args changed = args.args;
    changed.struct_size = 8;
    CHECK(refused(changed) == KESTREL_BAD_ARGUMENT);
    changed = args.args;
    changed.reserved = 1;
    CHECK(refused(changed) == KESTREL_BAD_ARGUMENT);
    changed = args.args;
    changed.max_positions = 0;
    CHECK(refused(changed) == KESTREL_BAD_ARGUMENT);
    changed = args.args;
    changed.model = nullptr;
    CHECK(refused(changed) == KESTREL_BAD_ARGUMENT);
    changed = args.args;
    changed.threads = 1000000;
    CHECK(refused(changed) == KESTREL_BAD_ARGUMENT);
    changed = args.args;
    changed.max_positions = 0xFFFFFFFFU;
    CHECK(refused(changed) == KESTREL_OUT_OF_MEMORY);
    CHECK(api.open(nullptr, nullptr) == KESTREL_BAD_ARGUMENT);
    api.close(nullptr);
}

TEST_CASE("borrowed memory gives the bits of own memory", "[engine][memory]") {
    const std::string model = GENERATE(description("mini-64l"), checkpoint("bf16-4l-k128").string());
    CAPTURE(model);
    const auto& borrow = capability<kestrel_borrow>(engine_api(), KESTREL_CAP_BORROW);
    Args own_args(model);
    Args args(model);
    const auto needs = needs_of(args);
    CHECK(needs.kind == KESTREL_MEMORY_HOST);
    AlignedMemory weights(needs.weights_bytes, 0xEE);
    AlignedMemory workspace(needs.workspace_bytes, 0xEE);
    args.args.weights = weights.data;
    args.args.weights_bytes = needs.weights_bytes;
    args.args.workspace = workspace.data;
    args.args.workspace_bytes = needs.workspace_bytes;
    REQUIRE(borrow.load(&args.args) == KESTREL_OK);
    char digest[65];
    char digest_baseline[65];
    REQUIRE(borrow.digest(&args.args, digest) == KESTREL_OK);
    CHECK(std::strlen(digest) == 64);
    REQUIRE(capability<kestrel_borrow>(baseline_api(), KESTREL_CAP_BORROW).digest(&args.args, digest_baseline) == KESTREL_OK);
    CHECK(std::string(digest) == digest_baseline);

    Engine own(own_args);
    Engine lent(args);
    for (int t = 0; t < 10; ++t) {
        CHECK(own.decode(t + 3) == lent.decode(t + 3));
        CHECK(same_bits(own.logits(), lent.logits()));
    }
    CHECK(same_bits(own.save(), lent.save()));  // also where the lent memory held something else before
    {
        Engine second(args);  // another arm in the same memory, after the first
        Engine fresh(own_args);
        CHECK(second.decode(5) == fresh.decode(5));
        CHECK(same_bits(second.save(), fresh.save()));
    }

    char changed[65];
    static_cast<float*>(weights.data)[1] += 1.0F;
    REQUIRE(borrow.digest(&args.args, changed) == KESTREL_OK);
    CHECK(std::string(digest) != changed);

    args.args.workspace_bytes = needs.workspace_bytes - 1;
    kestrel_engine* out = nullptr;
    CHECK(engine_api().open(&args.args, &out) == KESTREL_BAD_ARGUMENT);
    args.args.workspace_bytes = needs.workspace_bytes;
    args.args.weights = static_cast<char*>(weights.data) + 4;
    CHECK(engine_api().open(&args.args, &out) == KESTREL_BAD_ARGUMENT);
    args.args.weights = nullptr;
    CHECK(borrow.load(&args.args) == KESTREL_BAD_ARGUMENT);
}

TEST_CASE("a saved sequence continues where it was", "[engine][state]") {
    const Args args(checkpoint("f32-4l").string());
    Engine engine(args);
    for (int t = 0; t < 5; ++t) engine.decode(t);
    const auto saved = engine.save();
    const auto state = engine.read(KESTREL_READ_GDN_STATE, 0);
    engine.decode(40);
    const auto expected = engine.logits();
    for (int t = 0; t < 7; ++t) engine.decode(t + 50);
    CHECK_FALSE(same_bits(engine.read(KESTREL_READ_GDN_STATE, 0), state));

    engine.restore(saved);
    CHECK(same_bits(engine.save(), saved));
    CHECK(same_bits(engine.read(KESTREL_READ_GDN_STATE, 0), state));
    engine.decode(40);
    CHECK(same_bits(engine.logits(), expected));

    Engine other(args);
    other.restore(saved);
    other.decode(40);
    CHECK(same_bits(other.logits(), expected));

    const auto& table = capability<kestrel_state>(engine_api(), KESTREL_CAP_STATE);
    auto damaged = saved;
    damaged[3] ^= std::byte{1};
    CHECK(table.restore(other.handle(), damaged.data(), damaged.size()) == KESTREL_BAD_ARGUMENT);
    CHECK(table.restore(other.handle(), saved.data(), saved.size() - 1) == KESTREL_BAD_ARGUMENT);
    std::size_t count = 0;
    CHECK(table.read_size(engine.handle(), KESTREL_READ_GDN_STATE, 3, &count) == KESTREL_UNSUPPORTED);
    CHECK(table.read_size(engine.handle(), KESTREL_READ_GDN_STATE, 4, &count) == KESTREL_BAD_ARGUMENT);
}

TEST_CASE("a switch list overrides the environment; only the exact value selects ref", "[engine][switches]") {
    const auto& switches = capability<kestrel_switches>(engine_api(), KESTREL_CAP_SWITCHES);
    REQUIRE(switches.count() == 2);
    kestrel_switch_info described{};
    described.struct_size = sizeof described;
    REQUIRE(switches.describe(0, &described) == KESTREL_OK);
    CHECK(std::string(described.name) == "VLLM_CUDA_GDN_DELTA");
    REQUIRE(described.value_count == 2);
    CHECK(std::string(described.values[0]) == "reg");
    CHECK(std::string(described.values[1]) == "ref");
    REQUIRE(switches.describe(1, &described) == KESTREL_OK);
    CHECK(std::string(described.name) == "KESTREL_WEIGHTS");
    REQUIRE(described.value_count == 2);
    CHECK(std::string(described.values[0]) == "stored");
    CHECK(std::string(described.values[1]) == "q4_0");
    CHECK(switches.describe(2, &described) == KESTREL_BAD_ARGUMENT);

    Args args(checkpoint("f32-4l").string(), "ref");
    CHECK(effective(Engine(args)) == "ref");
    args.args.switch_count = 0;
    {
        const Environment set("VLLM_CUDA_GDN_DELTA", "ref");
        CHECK(effective(Engine(args)) == "reg");  // an empty list: the environment is ignored
        args.args.switches = nullptr;
        CHECK(effective(Engine(args)) == "ref");
    }
    for (const char* value : {static_cast<const char*>(nullptr), "", "r", "reg", "random", "REF", " ref", "ref ", "refx"}) {
        CAPTURE(value == nullptr ? "(unset)" : value);
        const Environment set("VLLM_CUDA_GDN_DELTA", value);
        CHECK(effective(Engine(args)) == "reg");
    }

    kestrel_engine* out = nullptr;
    const auto open_with = [&](std::vector<kestrel_switch> list) {
        Args bad(checkpoint("f32-4l").string());
        bad.args.switches = list.data();
        bad.args.switch_count = list.size();
        return engine_api().open(&bad.args, &out);
    };
    CHECK(open_with({{"VLLM_CUDA_GDN_DELTA", "REF"}}) == KESTREL_BAD_SWITCH);
    CHECK(std::string(engine_api().last_error()).find("reg (default), ref") != std::string::npos);
    CHECK(open_with({{"VLLM_CUDA_GDN", "ref"}}) == KESTREL_BAD_SWITCH);
    CHECK(std::string(engine_api().last_error()).find("VLLM_CUDA_GDN_DELTA") != std::string::npos);
    CHECK(open_with({{"VLLM_CUDA_GDN_DELTA", "ref"}, {"VLLM_CUDA_GDN_DELTA", "reg"}}) == KESTREL_BAD_SWITCH);
    CHECK(open_with({{"VLLM_CUDA_GDN_DELTA", nullptr}}) == KESTREL_BAD_ARGUMENT);
    args.args.switch_count = 1;
    CHECK(engine_api().open(&args.args, &out) == KESTREL_BAD_ARGUMENT);  // one entry of a null list
}

TEST_CASE("an idle engine uses no processor time", "[engine][threads]") {
    Args args(description("mini-64l"));
    Engine engine(args.threads(4));
    engine.decode(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // parked by now, however loaded the machine
    timespec before{};
    timespec after{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const double used_ms =
        static_cast<double>(after.tv_sec - before.tv_sec) * 1e3 + static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e6;
    CHECK(used_ms < 5.0);
    CHECK(engine.decode(2) >= 0);
}
