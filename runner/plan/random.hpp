// The only source of randomness in a plan. The standard library's distributions differ between implementations; a plan must
// come out the same everywhere from its seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kestrel {

// One stream for each purpose, so that asking for more of one thing never changes another.
enum class RandomPurpose : std::uint64_t { load_orders = 1, schedules = 2, paddings = 3, tokens = 4, simulation = 5, selftest = 6 };

// splitmix64 (Steele, Lea, Flood 2014): the n-th value is mix(state + n * 0x9e3779b97f4a7c15), n = 1, 2, ...
class Random {
  public:
    explicit Random(std::uint64_t state) : state_(state) {}

    // The stream of `purpose`, for one index of it (a replicate, a super-round): state = mix(mix(seed + purpose * odd) + index).
    Random(std::uint64_t seed, RandomPurpose purpose, std::uint64_t index = 0);

    [[nodiscard]] std::uint64_t next();

    // Uniform in [0, bound), without bias: values of the incomplete last interval are drawn again. bound > 0.
    [[nodiscard]] std::uint64_t below(std::uint64_t bound);

    // Fisher-Yates, from the last element down.
    template <typename T>
    void shuffle(std::vector<T>& items) {
        for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
    }

  private:
    std::uint64_t state_;
};

}  // namespace kestrel
