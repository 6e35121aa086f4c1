#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
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

// The engine in this program, through its C interface.
class Engine {
  public:
    Engine(const DecodeOptions& options, std::uint32_t max_positions) : api_(*kestrel_engine_entry(KESTREL_ABI_VERSION)) {
        const kestrel_switch switches[] = {{"KESTREL_LAUNCH", options.launch.c_str()}, {"VLLM_CUDA_GDN_DELTA", options.gdn.c_str()}};
        kestrel_open_args args{};
        args.struct_size = sizeof args;
        args.model = options.model.c_str();
        args.switches = switches;
        args.switch_count = std::size(switches);
        args.max_positions = max_positions;
        expect(api_.open(&args, &engine_));
    }
    ~Engine() { api_.close(engine_); }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    void decode() { expect(api_.decode(engine_, token_, &token_)); }
    [[nodiscard]] std::uint64_t state_bytes() const {
        kestrel_model_info info{};
        info.struct_size = sizeof info;
        expect(api_.info(engine_, &info));
        return info.state_bytes;
    }

  private:
    void expect(kestrel_status status) const {
        if (status != KESTREL_OK) throw std::runtime_error(api_.last_error());
    }
    const kestrel_engine_api& api_;
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

}  // namespace

void print_decode(const DecodeOptions& options, double bandwidth) {
    constexpr int traced_tokens = 4;
    constexpr int warm_up = 8;
    std::vector<int> positions = options.positions;
    std::sort(positions.begin(), positions.end());
    const auto source = open_model(options.model);
    const int room = positions.back() + warm_up + options.tokens + traced_tokens;
    const auto opening = Clock::now();
    Engine engine(options, static_cast<std::uint32_t>(room));
    std::printf("  %s, %s, %s: opened in %.1f s\n", options.model.c_str(), options.launch.c_str(), options.gdn.c_str(),
                ms_since(opening) / 1e3);
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
        const double floor = bytes_per_token(*source, engine.state_bytes(), position) / bandwidth * 1e3;
        std::printf("  position %d: median %.3f ms/token, mean %.3f, best %.3f; bound %.3f ms: %.1f %% of it\n", wanted, median, mean,
                    times.front(), floor, 100.0 * floor / median);
        print_kernels(engine, traced_tokens);
        position += traced_tokens;
    }
}

}  // namespace kestrel::cuda::bench
