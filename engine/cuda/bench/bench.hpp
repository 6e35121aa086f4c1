// The parts of bench_cuda. Times are the device's own, from events around graph replays or from the driver's trace of kernels.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/cuda/handles.hpp"

namespace kestrel::cuda::bench {

// Median of `passes` times of what `enqueue` puts into a stream, captured once as a graph and replayed, in microseconds.
[[nodiscard]] double graph_us(const std::function<void(cudaStream_t)>& enqueue, int passes);

// Bytes per second of reading `gib` GiB once with 16-byte loads: the bound of everything below.
[[nodiscard]] double read_bandwidth(std::size_t gib);

// Prints, for the matrices of the 27B shape, how long products with q4_0 take, cold: several copies in rotation, larger than the L2 cache.
// `bandwidth` in bytes per second gives the floors.
void print_products(double bandwidth);

// What one kernel did in a traced run.
struct KernelTime {
    std::size_t launches = 0;
    double us = 0.0;  // all launches together
    unsigned registers = 0;
};
// By name, of all kernels that `work` runs on this process's device; empty, and `problem` says why, where the driver's tracing library
// (CUPTI) cannot be used. Tracing slows launches down: never time `work` from outside.
[[nodiscard]] std::map<std::string, KernelTime> trace_kernels(const std::function<void()>& work, std::string& problem);

struct DecodeOptions {
    std::string model;           // as kestrel-ab's --model
    std::vector<int> positions;  // where to measure; context before is decoded
    int tokens = 32;             // timed, at each position
    // Ways of running, one after the other on the same weights: switches and values, each list like
    // "KESTREL_LAUNCH=graph,KESTREL_OVERLAP=on".
    std::vector<std::string> variants;
};
// Prints for each variant ms/token, its share of the bound, and each kernel's time per token.
void print_decode(const DecodeOptions& options, double bandwidth);

}  // namespace kestrel::cuda::bench
