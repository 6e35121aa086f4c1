// How near the CUDA engine comes to what the device's memory allows. Prints, from one run: the bandwidth of reading, q4_0 products of the
// 27B shape beside their floors, and for each model ms/token, share of the bound, and each kernel's time.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "engine/cuda/bench/bench.hpp"

int main(int argc, char** argv) {
    using namespace kestrel::cuda;
    CLI::App app("How near the CUDA engine comes to the device's bandwidth");
    bench::DecodeOptions decode;
    decode.positions = {0};
    decode.variants = {"KESTREL_LAUNCH=graph"};
    std::vector<std::string> models;
    std::size_t gib = 8;
    bool products = false;
    app.add_flag("--products", products, "Measure q4_0 products of the 27B shape, for several launch shapes");
    app.add_option("--model", models, "Models to decode: descriptions, Hugging Face directories or GGUF files");
    app.add_option("--positions", decode.positions, "Positions at which to measure; the context before is decoded")
        ->delimiter(',')
        ->check(CLI::NonNegativeNumber);
    app.add_option("--tokens", decode.tokens, "Timed tokens at each position")->check(CLI::Range(1, 100000))->capture_default_str();
    app.add_option("--variant", decode.variants, "Switches of a way of running, NAME=VALUE,NAME=VALUE; may be given several times")
        ->capture_default_str();
    app.add_option("--gib", gib, "GiB to read for the bandwidth")->check(CLI::Range(1, 64))->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        cudaDeviceProp device{};
        int driver = 0;
        check(cudaGetDeviceProperties(&device, 0), "finding a device");
        check(cudaDriverGetVersion(&driver), "asking for the driver's version");
        const double bandwidth = bench::read_bandwidth(gib);
        std::printf("%s, driver API %d: reading %zu GiB at %.3f TB/s\n", device.name, driver, gib, bandwidth / 1e12);
        if (products) bench::print_products(bandwidth);
        for (const std::string& model : models) {
            decode.model = model;
            bench::print_decode(decode, bandwidth);
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_cuda: %s\n", error.what());
        return 1;
    }
    return 0;
}
