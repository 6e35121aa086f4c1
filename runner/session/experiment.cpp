#include "runner/session/experiment.hpp"

#include <toml++/toml.h>

#include <initializer_list>
#include <limits>
#include <sstream>
#include <string_view>

#include "runner/record/error.hpp"

namespace kestrel::session {
namespace {

// A table in which every key has to be asked for or it is an error.
class StrictTable {
  public:
    StrictTable(const toml::table& table, const std::string& file, const std::string& section,
                std::initializer_list<std::string_view> known)
        : table_(&table), where_(file + (section.empty() ? "" : " [" + section + "]")) {
        for (const auto& [key, value] : table) {
            bool found = false;
            std::string allowed;
            for (const std::string_view name : known) {
                found = found || key.str() == name;
                allowed += (allowed.empty() ? "" : ", ") + std::string(name);
            }
            if (!found) throw Error(ExitCode::usage, where_ + ": unknown key '" + std::string(key.str()) + "'; allowed: " + allowed);
        }
    }

    template <typename Value>
    [[nodiscard]] Value required(std::string_view key) const {
        const auto value = (*table_)[key].value<Value>();
        if (!value) throw Error(ExitCode::usage, where_ + ": key '" + std::string(key) + "' is missing or of the wrong type");
        return *value;
    }

    [[nodiscard]] int integer(std::string_view key, int fallback, int least, int most) const {
        if (!table_->contains(key)) return fallback;
        const auto value = (*table_)[key].value_exact<std::int64_t>();
        if (!value || *value < least || *value > most) {
            throw Error(ExitCode::usage, where_ + ": '" + std::string(key) + "' must be an integer from " + std::to_string(least) + " to " +
                                             std::to_string(most));
        }
        return static_cast<int>(*value);
    }

    [[nodiscard]] const toml::table& table(std::string_view key) const {
        const toml::table* inner = (*table_)[key].as_table();
        if (inner == nullptr) throw Error(ExitCode::usage, where_ + ": section [" + std::string(key) + "] is missing");
        return *inner;
    }

    [[nodiscard]] const std::string& where() const { return where_; }

  private:
    const toml::table* table_;
    std::string where_;
};

ExperimentArm read_arm(const toml::table& table, const std::string& file, const std::string& section) {
    const StrictTable arm(table, file, section, {"engine", "switches"});
    ExperimentArm out;
    out.engine = arm.required<std::string>("engine");
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
    out.name = top.required<std::string>("name");
    out.version = top.integer("version", 1, 1, std::numeric_limits<int>::max());
    out.question = top.required<std::string>("question");
    out.base = read_arm(top.table("base"), path, "base");
    out.candidate = read_arm(top.table("candidate"), path, "candidate");
    const StrictTable workload(top.table("workload"), path, "workload", {"model", "threads", "position", "tokens"});
    out.model = workload.required<std::string>("model");
    out.threads = workload.integer("threads", out.threads, 0, 1024);
    out.position = workload.integer("position", out.position, 0, 1 << 20);
    out.tokens = workload.integer("tokens", out.tokens, 2, 4096);
    const StrictTable plan(top.table("plan"), path, "plan", {"replicates", "super_rounds", "margin_percent"});
    out.replicates = plan.integer("replicates", out.replicates, 1, 600);
    out.super_rounds = plan.integer("super_rounds", out.super_rounds, 1, 1000);
    out.margin = plan.required<double>("margin_percent") / 100.0;
    if (!(out.margin > 0.0 && out.margin < 1.0))
        throw Error(ExitCode::usage, plan.where() + ": 'margin_percent' must lie between 0 and 100");
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
