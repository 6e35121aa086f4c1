// Drives a fuzz target where libFuzzer is not there: driver RUNS FILE... changes the files in ways drawn from a fixed seed, so a failure
// happens again. Not guided by coverage: it guards what libFuzzer has found, and finds the plain mistakes.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size);

namespace {

class Mutator {
  public:
    explicit Mutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)) {}

    std::string next() {
        std::string text = seeds_[below(seeds_.size())];
        for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(text);
        return text;
    }

  private:
    std::size_t below(std::size_t limit) { return limit == 0 ? 0 : generator_() % limit; }

    // Numbers at which lengths and counts tip over.
    std::uint64_t edge() {
        static constexpr std::uint64_t edges[] = {0,
                                                  1,
                                                  7,
                                                  31,
                                                  0x7F,
                                                  0xFF,
                                                  0x7FFF,
                                                  0xFFFF,
                                                  0x7FFFFFFF,
                                                  0xFFFFFFFF,
                                                  std::uint64_t{1} << 62U,
                                                  0x7FFFFFFFFFFFFFFF,
                                                  0xFFFFFFFFFFFFFFFF};
        return edges[below(std::size(edges))] - below(2);
    }

    void change(std::string& text) {
        const std::size_t at = below(text.size());
        const std::size_t length = std::min(below(32), text.size() - at);
        switch (below(7)) {
            case 0:
                if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1U << below(8)));
                break;
            case 1:
                if (!text.empty()) text[at] = static_cast<char>(generator_());
                break;
            case 2: {  // a binary number
                const std::uint64_t value = edge();
                const std::size_t width = std::min(std::size_t{1} << below(4), text.size() - at);
                text.replace(at, width, std::string(reinterpret_cast<const char*>(&value), width));
                break;
            }
            case 3: {  // a number in text
                const std::size_t digit = text.find_first_of("0123456789", at);
                if (digit == std::string::npos) break;
                const std::size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
                text.replace(digit, end - digit, std::to_string(edge()));
                break;
            }
            case 4:
                text.erase(at, length);
                break;
            case 5:  // a piece of another place, or of another seed
                text.insert(at, piece());
                break;
            default:
                text.resize(at);
                break;
        }
    }

    std::string piece() {
        const std::string& from = seeds_[below(seeds_.size())];
        return from.empty() ? from : from.substr(below(from.size()), below(200));
    }

    std::vector<std::string> seeds_;
    std::mt19937_64 generator_{20261130};
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: driver RUNS FILE...\n");
        return 2;
    }
    std::vector<std::string> seeds;
    for (int i = 2; i < argc; ++i) {
        std::ifstream in(argv[i], std::ios::binary);
        seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
        if (!in || seeds.back().empty()) {
            std::fprintf(stderr, "%s: cannot be read or is empty\n", argv[i]);
            return 2;
        }
    }
    const auto run = [](const std::string& input) {
        return LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    };
    for (const std::string& seed : seeds) run(seed);
    Mutator mutator(seeds);
    const long runs = std::strtol(argv[1], nullptr, 10);
    for (long i = 0; i < runs; ++i) run(mutator.next());
    std::printf("%ld runs\n", runs);
    return 0;
}
