// How near the matrix-vector kernels come to the speed of memory. Prints the bandwidth of reading alone, then for each type and number of
// threads the bytes of weights per second, their share of that bandwidth, and the time per row. Matrices are as the engine holds them: rows
// arranged, in large pages. A product goes through several that together are larger than a cache. Each figure is a median over matrices and
// passes, and reading and products take turns: other work on the machine interrupts few of them, and slows both down alike.
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "engine/cpu/ops.hpp"
#include "engine/cpu/row_layout.hpp"
#include "engine/tensor_type.hpp"

namespace kestrel::cpu {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t large_page = std::size_t{2} << 20;
constexpr std::size_t cache_line = 64;

struct Options {
    std::size_t rows = 4096;
    std::size_t cols = 4096;
    std::size_t mib = 512;
    unsigned repetitions = 5;
    std::vector<std::uint32_t> threads{1, 2};
    std::string set;  // of instructions; empty: the widest
    std::vector<std::string> types{"f32", "f16", "bf16", "q4_0", "q4_1", "q8_0", "q6_k"};
};

struct FreePages {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{large_page}); }
};
using Pages = std::unique_ptr<std::byte[], FreePages>;

// Large pages where the system gives them, as the engine and the runner allocate weights.
Pages pages(std::size_t bytes) {
    const std::size_t rounded = (bytes + large_page - 1) / large_page * large_page;
    Pages memory(static_cast<std::byte*>(::operator new[](rounded, std::align_val_t{large_page})));
    (void)::madvise(memory.get(), rounded, MADV_HUGEPAGE);
    return memory;
}

// The sets that this processor runs, the widest last.
std::vector<const Kernels*> sets() {
    std::vector<const Kernels*> all{&base::table()};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) all.push_back(&avx2::table());
    if (__builtin_cpu_supports("avx512f")) all.push_back(&avx512::table());
#endif
    return all;
}

const Kernels& set_named(const std::string& name) {
    for (const Kernels* one : sets()) {
        if (name == one->name) return *one;
    }
    return kernels();
}

template <class Work>
double seconds_of(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Reads everything with vectors of the widest kind that the processor loads, as a product reads rows: four streams at a time, fetched
// ahead.
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
std::uint64_t
checksum(const std::byte* data, std::size_t bytes) {
    typedef std::uint64_t Line __attribute__((vector_size(cache_line), may_alias));
    constexpr std::size_t streams = 4;
    constexpr std::size_t length = 4 * page;
    Line sums[streams] = {};
    for (std::size_t begin = 0; begin + streams * length <= bytes; begin += streams * length) {
        for (std::size_t i = 0; i < length; i += sizeof(Line)) {
            for (std::size_t s = 0; s < streams; ++s) {
                const std::byte* line = data + begin + s * length + i;
                __builtin_prefetch(line + streams * length, 0, 2);
                sums[s] ^= *reinterpret_cast<const Line*>(line);
            }
        }
    }
    const Line all = (sums[0] ^ sums[1]) ^ (sums[2] ^ sums[3]);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < sizeof all / sizeof total; ++i) total ^= all[i];
    return total;
}

// Seconds to read `bytes` with all threads of the pool.
double read_once(ThreadPool& pool, const std::byte* data, std::size_t bytes) {
    std::vector<std::uint64_t> sums(pool.threads());
    const double seconds = seconds_of([&] {
        pool.run([&](std::size_t part, std::size_t parts) {
            const Range mine = share_of(bytes, 16 * page, part, parts);
            sums[part] = checksum(data + mine.first, mine.last - mine.first);
        });
    });
    asm volatile("" : : "g"(sums.data()) : "memory");
    return seconds;
}

// A random matrix; its scales are small normal numbers, since subnormal ones would slow the processor down.
void fill(TensorType type, std::size_t elements, std::byte* out, std::mt19937& random) {
    const TensorTypeInfo& info = info_of(type);
    const std::uint64_t bytes = bytes_of(info, elements);
    for (std::uint64_t i = 0; i + sizeof(std::uint32_t) <= bytes; i += sizeof(std::uint32_t)) {
        const auto word = static_cast<std::uint32_t>(random());
        std::memcpy(out + i, &word, sizeof word);
    }
    const auto put = [](std::byte* at, auto value) { std::memcpy(at, &value, sizeof value); };
    for (std::byte* block = out; block < out + bytes; block += info.block_bytes) {
        const float uniform = static_cast<float>(random()) * 0x1p-32F + 0x1p-10F;
        const std::uint16_t half = f16_bits(uniform);
        if (type == TensorType::f32)
            put(block, uniform);
        else if (type == TensorType::bf16)
            put(block, static_cast<std::uint16_t>(0x3F00U + (half & 0x7FU)));
        else if (type == TensorType::q6_k)
            put(block + 208, half);
        else
            put(block, half);
        if (type == TensorType::q4_1) put(block + 2, half);
    }
}

struct Streamed {
    std::vector<ArrangedMatrix> matrices;
    std::uint64_t each = 0;  // bytes of a matrix
};

Streamed matrices_of(TensorType type, const Options& options, std::byte* memory, std::size_t capacity) {
    const std::uint64_t each = bytes_of(info_of(type), options.rows * options.cols);
    const std::uint64_t stride = (each + cache_line - 1) / cache_line * cache_line;
    const std::uint64_t count = (capacity - overrun) / stride;
    Streamed streamed;
    streamed.each = each;
    std::mt19937 random(1);
    for (std::uint64_t i = 0; i < count; ++i) {
        std::byte* at = memory + i * stride;
        if (i == 0) {
            std::vector<std::byte> stored(each);
            fill(type, options.rows * options.cols, stored.data(), random);
            const std::uint64_t row_bytes = each / options.rows;
            for (std::uint64_t r = 0; r < each; r += row_bytes) arrange_row(type, options.cols, &stored[r], at + r);
        } else {
            std::memcpy(at, memory, each);
        }
        streamed.matrices.push_back({at, type});
    }
    return streamed;
}

// Adds the seconds of every product.
void time_products(ThreadPool& pool, const Kernels& kernel, const Streamed& streamed, const Options& options, const float* x, float* y,
                   std::vector<double>& seconds) {
    for (const ArrangedMatrix& matrix : streamed.matrices) {
        const Projection projection[] = {{matrix, y, options.rows}};
        seconds.push_back(seconds_of([&] { project(pool, kernel, projection, x, options.cols); }));
    }
}

// The same for reading alone, in pieces of the matrices' size.
void time_reading(ThreadPool& pool, const Streamed& streamed, std::vector<double>& seconds) {
    for (const ArrangedMatrix& matrix : streamed.matrices) seconds.push_back(read_once(pool, matrix.data, streamed.each));
}

double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void measure(const Options& options) {
    const std::size_t capacity = std::max(options.mib << 20U, bytes_of(info_of(TensorType::f32), options.rows * options.cols) + cache_line);
    const Pages memory = pages(capacity);
    std::memset(memory.get(), 1, capacity);
    std::vector<float> x(options.cols);
    std::mt19937 random(2);
    for (float& value : x) value = static_cast<float>(random()) * 0x1p-31F - 1.0F;
    std::vector<float> y(options.rows);
    const Kernels& kernel = set_named(options.set);
    std::printf("kernels %s, %zu x %zu, %zu MiB of matrices in rotation, median of %u passes; GB are 1e9 bytes\n", kernel.name,
                options.rows, options.cols, capacity >> 20U, options.repetitions);
    std::printf("%-6s %7s %9s %9s %6s %9s\n", "type", "threads", "read GB/s", "GEMV GB/s", "share", "ns/row");
    for (const std::string& name : options.types) {
        const TensorType type = *tensor_type_named(name);
        const Streamed streamed = matrices_of(type, options, memory.get(), capacity);
        for (const std::uint32_t threads : options.threads) {
            ThreadPool pool(threads);
            std::vector<double> readings;
            std::vector<double> products;
            for (unsigned i = 0; i < options.repetitions; ++i) {
                time_reading(pool, streamed, readings);
                time_products(pool, kernel, streamed, options, x.data(), y.data(), products);
            }
            const double reading = median(readings);
            const double multiplying = median(products);
            const double read_rate = static_cast<double>(streamed.each) / reading * 1e-9;
            const double rate = static_cast<double>(streamed.each) / multiplying * 1e-9;
            std::printf("%-6s %7u %9.2f %9.2f %5.0f%% %9.1f\n", name.c_str(), threads, read_rate, rate, 100.0 * rate / read_rate,
                        multiplying * 1e9 / static_cast<double>(options.rows));
            std::fflush(stdout);
        }
    }
}

}  // namespace
}  // namespace kestrel::cpu

int main(int argc, char** argv) {
    kestrel::cpu::Options options;
    CLI::App app("Speed of the CPU engine's matrix-vector kernels beside the speed of memory");
    app.add_option("--rows", options.rows, "rows of a matrix")->check(CLI::Range(1, 1 << 20))->capture_default_str();
    app.add_option("--cols", options.cols, "columns, a multiple of 256")->check(CLI::Range(256, 1 << 20))->capture_default_str();
    app.add_option("--mib", options.mib, "MiB of matrices to go through")->check(CLI::Range(1, 1 << 20))->capture_default_str();
    app.add_option("--repetitions", options.repetitions, "passes through all matrices")->check(CLI::Range(1, 1000))->capture_default_str();
    app.add_option("--threads", options.threads, "numbers of threads")->delimiter(',')->check(CLI::Range(1, 1024))->capture_default_str();
    app.add_option("--types", options.types, "types of the matrix")
        ->delimiter(',')
        ->check(CLI::IsMember(options.types))
        ->capture_default_str();
    std::vector<std::string> names;
    for (const kestrel::cpu::Kernels* one : kestrel::cpu::sets()) names.emplace_back(one->name);
    app.add_option("--set", options.set, "set of instructions; the widest if not given")->check(CLI::IsMember(names));
    CLI11_PARSE(app, argc, argv);
    if (options.cols % 256 != 0) {
        std::fprintf(stderr, "--cols %zu is not a multiple of 256, q6_k's block; give one that is\n", options.cols);
        return 2;
    }
    try {
        kestrel::cpu::measure(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
