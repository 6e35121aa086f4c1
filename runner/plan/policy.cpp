#include "runner/plan/policy.hpp"

#include <sstream>

#include "runner/plan/plan.hpp"
#include "runner/plan/strict_table.hpp"
#include "runner/record/error.hpp"

namespace kestrel {

Policy parse_policy(std::string_view text, const std::string& file) {
    toml::table root;
    try {
        root = toml::parse(text, file);
    } catch (const toml::parse_error& error) {
        std::ostringstream where;
        where << error.source().begin;
        throw Error(ExitCode::usage, file + ": " + std::string(error.description()) + " (" + where.str() + ")");
    }
    const StrictTable table(root, file, "",
                            {"name", "margin_percent", "alpha", "control_confidence", "power", "effect_in_margins", "maximum_replicates",
                             "super_rounds", "output_rule"});
    Policy policy;
    policy.name = table.text("name");
    policy.margin = table.number("margin_percent", 0.001, 50.0) / 100.0;
    policy.alpha = table.number("alpha", policy.alpha, 0.0001, 0.5);
    policy.control_confidence = table.number("control_confidence", policy.control_confidence, 0.5, 0.9999);
    policy.power = table.number("power", policy.power, 0.5, 0.999);
    policy.effect_in_margins = table.number("effect_in_margins", policy.effect_in_margins, 1.1, 10.0);
    policy.maximum_replicates = table.integer("maximum_replicates", policy.maximum_replicates, 6, 600);
    policy.super_rounds = table.integer("super_rounds", policy.super_rounds, 1, 1000);
    policy.output_rule = table.text("output_rule", policy.output_rule);
    if (policy.maximum_replicates % 6 != 0) {
        throw Error(ExitCode::usage,
                    file + ": 'maximum_replicates' must be a multiple of six, because looks are taken every six replicates");
    }
    if (!is_output_rule(policy.output_rule)) {
        throw Error(ExitCode::usage, file + ": 'output_rule' must be 'bit-identical' or 'tolerance:' and a number between 0 and 1");
    }
    return policy;
}

}  // namespace kestrel
