#include "runner/plan/random.hpp"

#include <limits>
#include <stdexcept>

namespace kestrel {
namespace {

constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15U;

std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

}  // namespace

Random::Random(std::uint64_t seed, RandomPurpose purpose, std::uint64_t index)
    : state_(mix(mix(seed + static_cast<std::uint64_t>(purpose) * golden_gamma) + index)) {}

std::uint64_t Random::next() {
    state_ += golden_gamma;
    return mix(state_);
}

std::uint64_t Random::below(std::uint64_t bound) {
    if (bound == 0) throw std::invalid_argument("Random::below needs a positive bound");
    const std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t limit = largest - (largest % bound);  // a multiple of bound
    std::uint64_t value = next();
    while (value >= limit) value = next();
    return value % bound;
}

}  // namespace kestrel
