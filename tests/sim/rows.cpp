#include "tests/sim/pipeline.hpp"

namespace kestrel::sim {
namespace {

Row row(const std::string& name, double margin, int replicates, void (*change)(Scenario&) = nullptr) {
    Row result;
    result.scenario.name = name;
    result.margin = margin;
    result.replicates = replicates;
    if (change != nullptr) change(result.scenario);
    return result;
}

// Identical arms on a machine that does nothing but scatter, at the margins that a plan would choose for that scatter.
void add_clean(std::vector<Row>& rows) {
    struct Clean {
        const char* name;
        double placement;
        double margin;
        int replicates;
    };
    for (const Clean& c : {Clean{"clean, graphs 0.02 %", 0.0002, 0.002, 6}, Clean{"clean, 0.1 %", 0.001, 0.005, 6},
                           Clean{"clean, streams 0.18 %", 0.0018, 0.005, 12}, Clean{"clean, 0.18 %", 0.0018, 0.005, 18},
                           Clean{"clean, 0.5 %", 0.005, 0.01, 18}, Clean{"clean, 0.5 %", 0.005, 0.01, 30}}) {
        rows.push_back(row(c.name, c.margin, c.replicates));
        rows.back().scenario.placement = c.placement;
        if (c.placement < 0.001) rows.back().scenario.window_noise = rows.back().scenario.token_noise = 0.0005;  // as graph replay measures
    }
}

void add_disturbed(std::vector<Row>& rows, double margin, int replicates) {
    rows.push_back(row("linear drift 1 %", margin, replicates, [](Scenario& s) { s.drift = 0.01; }));
    rows.push_back(row("boost decay 2 %", margin, replicates, [](Scenario& s) { s.decay = 0.02; }));
    rows.push_back(row("AR(1) 0.9", margin, replicates, [](Scenario& s) { s.noise = Noise::autoregressive; }));
    rows.push_back(row("second slot 0.3 %", margin, replicates, [](Scenario& s) { s.second_slot = 0.003; }));
    rows.push_back(row("run after base 0.3 %", margin, replicates, [](Scenario& s) { s.after_base = 0.003; }));
    rows.push_back(row("period-4 spike 0.6 %", margin, replicates, [](Scenario& s) { s.spike = 0.006; }));
    rows.push_back(row("heavy tails of windows", margin, replicates, [](Scenario& s) { s.noise = Noise::heavy; }));
    rows.push_back(row("heavy tails of placements", margin, replicates, [](Scenario& s) { s.heavy_placement = true; }));
    rows.push_back(row("rare slow mode 1 %, each arm", margin, replicates, [](Scenario& s) { s.modes = Modes::rare_each; }));
    rows.push_back(row("rare slow mode 1 %, candidate", margin, replicates, [](Scenario& s) { s.modes = Modes::rare_candidate; }));
    rows.push_back(row("equal modes 1 %, candidate", margin, replicates, [](Scenario& s) { s.modes = Modes::equal_candidate; }));
}

void add_power(std::vector<Row>& rows) {
    for (const double placement : {0.0002, 0.0018, 0.005}) {
        for (const double effect : {0.001, 0.002, 0.005, 0.01}) {
            Row result = row("power", effect / 2.0, 18);
            result.scenario.effect = effect;
            result.scenario.placement = placement;
            if (placement < 0.001) result.scenario.window_noise = result.scenario.token_noise = 0.0005;
            rows.push_back(result);
        }
    }
}

}  // namespace

std::vector<Row> all_rows() {
    std::vector<Row> rows;
    add_clean(rows);
    // A margin below the scatter: SAME is out of reach, so false FASTER and SLOWER show as far as the control lets them.
    for (const int replicates : {6, 12, 18, 30}) rows.push_back(row("clean, margin too small", 0.001, replicates));
    rows.push_back(row("clean, margin just possible", 0.0015, 30));
    add_disturbed(rows, 0.001, 6);
    add_disturbed(rows, 0.005, 12);
    add_disturbed(rows, 0.0015, 30);
    add_power(rows);
    return rows;
}

}  // namespace kestrel::sim
