// Simulated sessions: what the machine does to the times of three arms.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "runner/plan/plan.hpp"
#include "runner/plan/random.hpp"

namespace kestrel::sim {

enum class Noise { normal, autoregressive, heavy };
enum class Modes { none, rare_candidate, rare_each, equal_candidate };

// All sizes are relative: 0.003 stands for 0.3 %. Times are multiplied by exp of the sum of all parts.
struct Scenario {
    std::string name;
    double effect = 0.0;           // ln(base / candidate) that is planted
    double placement = 0.0018;     // standard deviation between replicates of a contrast of two arms
    bool heavy_placement = false;  // Student's t with 3 degrees of freedom instead of normal, same standard deviation
    Noise noise = Noise::normal;   // of windows
    double window_noise = 0.003;
    double token_noise = 0.003;
    double drift = 0.0;  // linear, over a replicate, all arms alike
    double decay = 0.0;  // boost: at the start of a replicate, fading with a fifth of its length
    double second_slot = 0.0;
    double after_base = 0.0;
    double spike = 0.0;  // every fourth window
    Modes modes = Modes::none;
    double mode_size = 0.01;

    // What the contrast of candidate and base is on average over placements: what the interval is to cover.
    [[nodiscard]] double truth() const { return effect - (modes == Modes::rare_candidate ? 0.1 * mode_size : 0.0); }
};

// Normal values from the project's own generator (Marsaglia's polar method), so that a seed gives the same table everywhere.
class Normal {
  public:
    explicit Normal(Random random) : random_(random) {}
    [[nodiscard]] double next();
    [[nodiscard]] double uniform() { return static_cast<double>(random_.next() >> 11U) * 0x1.0p-53; }
    // Student's t with 3 degrees of freedom, scaled to standard deviation 1.
    [[nodiscard]] double heavy();

  private:
    Random random_;
    double kept_ = 0.0;
    bool has_kept_ = false;
};

// Appends the windows of replicates [from, to) of the plan to `windows`.
void simulate(const Scenario& scenario, const Plan& plan, int from, int to, Normal& normal, std::vector<Window>& windows);

}  // namespace kestrel::sim
