#include <algorithm>

#include "engine/cuda/bench/bench.hpp"
#include "engine/cuda/kernel_launch.cuh"

namespace kestrel::cuda::bench {

// Eight wide loads in flight per thread. The sum is stored only if it is a value that zeroed memory does not give, so that no load is left
// out.
__global__ void k_read(const uint4* from, std::size_t count, unsigned* out) {
    constexpr unsigned in_flight = 8;
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    unsigned sum = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += in_flight * step) {
        uint4 v[in_flight];
#pragma unroll
        for (unsigned k = 0; k < in_flight; ++k) v[k] = i + k * step < count ? __ldg(from + i + k * step) : uint4{};
#pragma unroll
        for (unsigned k = 0; k < in_flight; ++k) sum |= v[k].x | v[k].y | v[k].z | v[k].w;
    }
    if (sum != 0) *out = sum;
}

double graph_us(const std::function<void(cudaStream_t)>& enqueue, int passes) {
    const Stream stream = make_stream();
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "starting a capture");
    enqueue(stream.get());
    cudaGraph_t captured = nullptr;
    check(cudaStreamEndCapture(stream.get(), &captured), "capturing");
    const Graph graph(captured);
    cudaGraphExec_t instantiated = nullptr;
    check(cudaGraphInstantiate(&instantiated, captured, 0), "instantiating a graph");
    const GraphExec executable(instantiated);
    const Event begin = make_event();
    const Event end = make_event();
    std::vector<float> times;
    for (int pass = 0; pass < passes + 1; ++pass) {  // the first warms up
        check(cudaEventRecord(begin.get(), stream.get()), "recording an event");
        check(cudaGraphLaunch(executable.get(), stream.get()), "replaying a graph");
        check(cudaEventRecord(end.get(), stream.get()), "recording an event");
        check(cudaEventSynchronize(end.get()), "waiting for a graph");
        float ms = 0.0F;
        check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "reading events");
        if (pass > 0) times.push_back(ms);
    }
    std::nth_element(times.begin(), times.begin() + passes / 2, times.end());
    return 1e3 * times[static_cast<std::size_t>(passes / 2)];
}

double read_bandwidth(std::size_t gib) {
    const std::size_t bytes = gib << 30U;
    const Buffer<std::byte> memory = make_buffer<std::byte>(bytes);
    const Buffer<unsigned> out = make_buffer<unsigned>(1);
    check(cudaMemset(memory.get(), 0, bytes), "clearing memory");
    check(cudaDeviceSynchronize(), "clearing memory");
    int processors = 0;
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "asking for the device's size");
    constexpr int blocks_per_processor = 8;
    constexpr unsigned threads = 256;
    const double us = graph_us(
        [&](cudaStream_t stream) {
            launch("k_read", k_read, {static_cast<unsigned>(processors * blocks_per_processor), threads}, stream,
                   reinterpret_cast<const uint4*>(memory.get()), bytes / sizeof(uint4), out.get());
        },
        5);
    return static_cast<double>(bytes) / us * 1e6;
}

}  // namespace kestrel::cuda::bench
