// Experiments: named, versioned questions. One TOML file each in configs/experiments/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel::session {

struct ExperimentArm {
    std::string engine;  // an engine's name ("kestrel_cpu": lib<name>.so beside the program) or the path of a library
    std::vector<SwitchSetting> switches;
};

struct Experiment {
    std::string name;
    int version = 1;
    std::string question;
    ExperimentArm base;
    ExperimentArm candidate;
    std::string model;  // a description's name in configs/models/, or a path
    int threads = 0;    // 0: as many as the process may run on
    int position = 0;
    int tokens = 16;  // timed per window
    std::string policy = "default";
    // Instead of what the policy and the controls of earlier sessions say.
    std::optional<int> replicates;
    std::optional<int> super_rounds;
    std::optional<double> margin;  // relative
};

// Reads an experiment; every key must be known. Throws Error(usage) naming file, line or key, and what is allowed.
[[nodiscard]] Experiment read_experiment(const std::string& path);

// "NAME=VALUE", as given on the command line. Throws Error(usage).
[[nodiscard]] SwitchSetting parse_switch(const std::string& text);

}  // namespace kestrel::session
