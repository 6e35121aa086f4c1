#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "engine/abi.h"
#include "engine/cuda/bench/bench.hpp"
#include "engine/model_source.hpp"

extern "C" const kestrel_engine_api* kestrel_engine_entry(std::uint32_t caller_abi_version);

namespace kestrel::cuda::bench {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

const kestrel_engine_api& api() {
    return *kestrel_engine_entry(KESTREL_ABI_VERSION);
}

void expect(kestrel_status status) {
    if (status != KESTREL_OK) throw std::runtime_error(api().last_error());
}

// "A=b,C=d" as switches; the texts outlive them.
class Switches {
  public:
    explicit Switches(const std::string& list) {
        std::istringstream all(list);
        for (std::string one; std::getline(all, one, ',');) {
            const auto equals = one.find('=');
            if (equals == std::string::npos) throw std::runtime_error("not NAME=VALUE: " + one);
            texts_.emplace_back(one.substr(0, equals), one.substr(equals + 1));
        }
        for (const auto& [name, value] : texts_) switches_.push_back({name.c_str(), value.c_str()});
    }
    [[nodiscard]] const std::vector<kestrel_switch>& list() const { return switches_; }

  private:
    std::vector<std::pair<std::string, std::string>> texts_;
    std::vector<kestrel_switch> switches_;
};

kestrel_open_args arguments(const std::string& model, std::uint32_t max_positions, const Switches& switches) {
    kestrel_open_args args{};
    args.struct_size = sizeof args;
    args.model = model.c_str();
    args.max_positions = max_positions;
    args.switches = switches.list().data();
    args.switch_count = switches.list().size();
    return args;
}

// A model's weights on the device, for one engine after another.
class LentWeights {
  public:
    LentWeights(const std::string& model, std::uint32_t max_positions)
        : allocate_(*static_cast<const kestrel_allocate*>(api().capability(KESTREL_CAP_ALLOCATE))) {
        const auto& borrow = *static_cast<const kestrel_borrow*>(api().capability(KESTREL_CAP_BORROW));
        const Switches none("");
        kestrel_open_args args = arguments(model, max_positions, none);
        kestrel_memory_needs needs{};
        needs.struct_size = sizeof needs;
        expect(borrow.needs(&args, &needs));
        bytes = needs.weights_bytes;
        expect(allocate_.allocate(KESTREL_MEMORY_DEVICE, bytes, &memory));
        args.weights = memory;
        args.weights_bytes = bytes;
        expect(borrow.load(&args));
    }
    ~LentWeights() { allocate_.release(KESTREL_MEMORY_DEVICE, memory); }
    LentWeights(const LentWeights&) = delete;
    LentWeights& operator=(const LentWeights&) = delete;
    void* memory = nullptr;
    std::size_t bytes = 0;

  private:
    const kestrel_allocate& allocate_;
};

// The engine in this program, through its C interface.
class Engine {
  public:
    Engine(const std::string& model, std::uint32_t max_positions, const Switches& switches, const LentWeights& weights) {
        kestrel_open_args args = arguments(model, max_positions, switches);
        args.weights = weights.memory;
        args.weights_bytes = weights.bytes;
        expect(api().open(&args, &engine_));
    }
    ~Engine() { api().close(engine_); }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    void decode() { expect(api().decode(engine_, token_, &token_)); }
    [[nodiscard]] std::uint64_t state_bytes() const {
        kestrel_model_info info{};
        info.struct_size = sizeof info;
        expect(api().info(engine_, &info));
        return info.state_bytes;
    }

  private:
    kestrel_engine* engine_ = nullptr;
    std::int32_t token_ = 1;
};

// What a token cannot do without: every weight but the embedding's other rows, the recurrent state twice, the caches once.
double bytes_per_token(const ModelSource& source, std::uint64_t state_bytes, int position) {
    double bytes = 2.0 * static_cast<double>(state_bytes);
    const WeightLayout layout = layout_of(source, WeightFormat::stored);
    for (const TensorSpec& tensor : layout.tensors()) {
        const bool one_row = tensor.role == Role::embed && !source.dims.tied_head;
        bytes += static_cast<double>(one_row ? bytes_of(info_of(tensor.type), tensor.shape.back()) : tensor.bytes());
    }
    const ModelDims& dims = source.dims;
    return bytes + 2.0 * dims.attention_layers() * dims.kv_heads * dims.head_dim * sizeof(float) * (position + 1.0);
}

void print_kernels(Engine& engine, int tokens) {
    std::string problem;
    const auto kernels = trace_kernels(
        [&] {
            for (int i = 0; i < tokens; ++i) engine.decode();
        },
        problem);
    if (!problem.empty()) std::printf("    %s\n", problem.c_str());
    std::vector<std::pair<std::string, KernelTime>> by_time(kernels.begin(), kernels.end());
    std::sort(by_time.begin(), by_time.end(), [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
    double total = 0.0;
    for (const auto& [name, kernel] : by_time) {
        total += kernel.us / tokens;
        std::printf("    %-32s %6.1f launches  %8.2f us each  %9.1f us a token  %3u registers\n", name.c_str(),
                    static_cast<double>(kernel.launches) / tokens, kernel.us / static_cast<double>(kernel.launches), kernel.us / tokens,
                    kernel.registers);
    }
    if (!by_time.empty()) std::printf("    %-32s %61.1f us a token\n", "all kernels", total);
}

constexpr int traced_tokens = 4;
constexpr int warm_up = 8;

void print_variant(const DecodeOptions& options, const ModelSource& source, const LentWeights& weights, int room,
                   const std::vector<int>& positions, const std::string& variant, double bandwidth) {
    std::printf("  %s\n", variant.c_str());
    const Switches switches(variant);
    Engine engine(options.model, static_cast<std::uint32_t>(room), switches, weights);
    int position = 0;
    for (const int wanted : positions) {
        for (; position < wanted + warm_up; ++position) engine.decode();
        std::vector<double> times;
        for (int i = 0; i < options.tokens; ++i, ++position) {
            const auto begin = Clock::now();
            engine.decode();
            times.push_back(ms_since(begin));
        }
        std::sort(times.begin(), times.end());
        const double median = times[times.size() / 2];
        const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
        const double floor = bytes_per_token(source, engine.state_bytes(), position) / bandwidth * 1e3;
        std::printf("  position %d: median %.3f ms/token, mean %.3f, best %.3f; bound %.3f ms: %.1f %% of it\n", wanted, median, mean,
                    times.front(), floor, 100.0 * floor / median);
        print_kernels(engine, traced_tokens);
        position += traced_tokens;
    }
}

}  // namespace

void print_decode(const DecodeOptions& options, double bandwidth) {
    std::vector<int> positions = options.positions;
    std::sort(positions.begin(), positions.end());
    const auto source = open_model(options.model);
    const int room = positions.back() + warm_up + options.tokens + traced_tokens;
    const auto loading = Clock::now();
    const LentWeights weights(options.model, static_cast<std::uint32_t>(room));
    std::printf("  %s: weights made in %.1f s\n", options.model.c_str(), ms_since(loading) / 1e3);
    for (const std::string& variant : options.variants) print_variant(options, *source, weights, room, positions, variant, bandwidth);
}

}  // namespace kestrel::cuda::bench
