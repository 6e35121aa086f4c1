#include "tests/sim/scenario.hpp"

#include "runner/record/names.hpp"

namespace kestrel::sim {
namespace {

constexpr double base_ns = 10e6;  // 10 ms a token: rounding to nanoseconds is far below every effect here

// The part of each arm's time that its placement in this process fixes.
std::array<double, 3> placements(const Scenario& scenario, Normal& normal) {
    std::array<double, 3> level{};
    for (double& value : level) {
        value = scenario.placement / std::sqrt(2.0) * (scenario.heavy_placement ? normal.heavy() : normal.next());
    }
    double& candidate = level[index_of(ArmRole::candidate)];
    candidate -= scenario.effect;
    switch (scenario.modes) {
        case Modes::none:
            break;
        case Modes::rare_candidate:
            candidate += normal.uniform() < 0.1 ? scenario.mode_size : 0.0;
            break;
        case Modes::rare_each:
            for (double& value : level) value += normal.uniform() < 0.1 ? scenario.mode_size : 0.0;
            break;
        case Modes::equal_candidate:
            candidate += (normal.uniform() < 0.5 ? 0.5 : -0.5) * scenario.mode_size;
            break;
    }
    return level;
}

// Window noise, one process's stream of it.
class WindowNoise {
  public:
    WindowNoise(const Scenario& scenario, Normal& normal) : scenario_(&scenario), normal_(&normal), state_(normal.next()) {}
    double next() {
        if (scenario_->noise == Noise::heavy) return scenario_->window_noise * normal_->heavy();
        if (scenario_->noise == Noise::normal) return scenario_->window_noise * normal_->next();
        state_ = 0.9 * state_ + std::sqrt(1.0 - 0.81) * normal_->next();
        return scenario_->window_noise * state_;
    }

  private:
    const Scenario* scenario_;
    Normal* normal_;
    double state_;
};

}  // namespace

double Normal::next() {
    if (has_kept_) {
        has_kept_ = false;
        return kept_;
    }
    double x = 0.0;
    double y = 0.0;
    double s = 0.0;
    do {
        x = 2.0 * uniform() - 1.0;
        y = 2.0 * uniform() - 1.0;
        s = x * x + y * y;
    } while (s >= 1.0 || s == 0.0);
    const double factor = std::sqrt(-2.0 * std::log(s) / s);
    kept_ = y * factor;
    has_kept_ = true;
    return x * factor;
}

double Normal::heavy() {
    const double numerator = next();
    double chi = 0.0;
    for (int i = 0; i < 3; ++i) {
        const double value = next();
        chi += value * value;
    }
    return numerator / std::sqrt(chi / 3.0) / std::sqrt(3.0);  // the variance of t with 3 degrees of freedom is 3
}

void simulate(const Scenario& scenario, const Plan& plan, int from, int to, Normal& normal, std::vector<Window>& windows) {
    const double length = 18.0 * plan.super_rounds;
    for (int replicate = from; replicate < to; ++replicate) {
        const std::array<double, 3> level = placements(scenario, normal);
        WindowNoise noise(scenario, normal);
        for (int super_round = 0; super_round < plan.super_rounds; ++super_round) {
            const auto& order = plan.schedules[static_cast<std::size_t>(replicate)][static_cast<std::size_t>(super_round)];
            for (std::size_t i = 0; i < order.size(); ++i) {
                const double place = 18.0 * super_round + static_cast<double>(i);
                double log_time = level.at(index_of(order[i])) + noise.next();
                log_time += scenario.drift * place / length + scenario.decay * std::exp(-place / (0.2 * length));
                if (i % 3 == 1) log_time += scenario.second_slot;
                if (order[i == 0 ? order.size() - 1 : i - 1] == ArmRole::base) log_time += scenario.after_base;
                if ((18 * static_cast<std::size_t>(super_round) + i) % 4 == 0) log_time += scenario.spike;

                Window& window = windows.emplace_back();
                window.replicate = replicate;
                window.super_round = super_round;
                window.round = static_cast<int>(i / 3);
                window.slot = static_cast<int>(i % 3);
                window.arm = order[i];
                const double token = base_ns * std::exp(log_time);
                window.token_ns.reserve(static_cast<std::size_t>(plan.tokens));
                for (int t = 0; t < plan.tokens; ++t) {
                    const std::int64_t ns = std::llround(token * (1.0 + scenario.token_noise * normal.next()));
                    window.token_ns.push_back(ns);
                    window.window_ns += ns;
                }
            }
        }
    }
}

}  // namespace kestrel::sim
