#include "runner/session/experiment.hpp"

#include <toml++/toml.h>

#include <limits>
#include <sstream>

#include "runner/plan/strict_table.hpp"
#include "runner/record/error.hpp"

namespace kestrel::session {
namespace {

ExperimentArm read_arm(const toml::table& table, const std::string& file, const std::string& section) {
    const StrictTable arm(table, file, section, {"engine", "switches"});
    ExperimentArm out;
    out.engine = arm.text("engine");
    if (!table.contains("switches")) return out;
    for (const auto& [name, value] : arm.table("switches")) {
        const auto text = value.value_exact<std::string>();
        if (!text) throw Error(ExitCode::usage, arm.where() + ": switch '" + std::string(name.str()) + "' must be a string");
        out.switches.push_back({std::string(name.str()), *text});
    }
    return out;
}

}  // namespace

Experiment read_experiment(const std::string& path) {
    toml::table root;
    try {
        root = toml::parse_file(path);
    } catch (const toml::parse_error& error) {
        std::ostringstream where;
        where << error.source().begin;
        throw Error(ExitCode::usage, path + ": " + std::string(error.description()) + " (" + where.str() + ")");
    }
    const StrictTable top(root, path, "", {"name", "version", "question", "base", "candidate", "workload", "plan"});
    Experiment out;
    out.name = top.text("name");
    out.version = top.integer("version", 1, 1, std::numeric_limits<int>::max());
    out.question = top.text("question");
    out.base = read_arm(top.table("base"), path, "base");
    out.candidate = read_arm(top.table("candidate"), path, "candidate");
    const StrictTable workload(top.table("workload"), path, "workload", {"model", "threads", "position", "tokens"});
    out.model = workload.text("model");
    out.threads = workload.integer("threads", out.threads, 0, 1024);
    out.position = workload.integer("position", out.position, 0, 1 << 20);
    out.tokens = workload.integer("tokens", out.tokens, 2, 4096);
    const StrictTable plan(top.table("plan"), path, "plan", {"policy", "replicates", "super_rounds", "margin_percent"});
    out.policy = plan.text("policy", out.policy);
    if (plan.has("replicates")) out.replicates = plan.integer("replicates", 0, 1, 600);
    if (plan.has("super_rounds")) out.super_rounds = plan.integer("super_rounds", 0, 1, 1000);
    if (plan.has("margin_percent")) out.margin = plan.number("margin_percent", 0.001, 50.0) / 100.0;
    return out;
}

SwitchSetting parse_switch(const std::string& text) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
        throw Error(ExitCode::usage, "'" + text + "' is not a switch; write NAME=VALUE, e.g. VLLM_CUDA_GDN_DELTA=ref");
    }
    return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace kestrel::session
