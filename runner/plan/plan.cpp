#include "runner/plan/plan.hpp"

#include <cmath>
#include <cstdlib>

#include "runner/plan/random.hpp"
#include "runner/plan/schedule.hpp"
#include "runner/record/error.hpp"
#include "runner/stats/looks.hpp"

namespace kestrel {
namespace {

// Limits that catch a slip of the keyboard, not ones that a real session would meet.
constexpr int max_replicates = 600;
constexpr int max_super_rounds = 1000;
constexpr int max_tokens = 100'000;
constexpr int max_position = 10'000'000;
constexpr int max_threads = 4096;
constexpr double max_margin = 0.5;

[[noreturn]] void refuse(const std::string& message) {
    throw Error(ExitCode::usage, message);
}

void require_range(const char* name, int value, int low, int high, const char* advice) {
    if (value >= low && value <= high) return;
    refuse(std::string(name) + " is " + std::to_string(value) + ", but must be " + std::to_string(low) + " to " + std::to_string(high) +
           ". " + advice);
}

void require_confidence(const char* name, double value) {
    if (value >= 0.5 && value <= 0.9999) return;
    refuse(std::string(name) + " must be 0.5 to 0.9999. 0.95 is usual for the candidate, 0.99 for the control.");
}

void require_output_rule(const std::string& rule) {
    if (is_output_rule(rule)) return;
    refuse("The output rule is '" + rule +
           "'. Write 'bit-identical', or 'tolerance:' and a number between 0 and 1 such as tolerance:1e-5.");
}

void validate(const PlanRequest& request) {
    if (request.experiment.empty()) refuse("The experiment has no name. Give it one; sessions of one name and version form a series.");
    require_range("The experiment version", request.experiment_version, 1, 1'000'000, "Raise it whenever the experiment changes.");
    require_range("The number of replicates", request.replicates, 1, max_replicates,
                  "Use a multiple of six; two are the least with an interval.");
    require_range("The number of super-rounds", request.super_rounds, 1, max_super_rounds, "Four are usual; more replicates help more.");
    require_range("The number of timed tokens", request.tokens, 1, max_tokens, "16 to 64 are usual.");
    require_range("The position", request.position, 0, max_position, "It is the number of tokens decoded before the window.");
    require_range("The number of threads", request.threads, 0, max_threads, "0 stands for all that the process may use.");
    if (!(request.margin > 0.0 && request.margin <= max_margin)) {
        refuse("The margin must be above 0 and at most 0.5. It is the smallest relative difference that matters: 0.01 stands for 1 %.");
    }
    require_confidence("The confidence", request.confidence);
    require_confidence("The control's confidence", request.control_confidence);
    require_output_rule(request.output_rule);
    if (!(std::isfinite(request.control_sd) && request.control_sd >= 0.0))
        refuse("The control's standard deviation must be finite, and not negative.");
}

std::vector<ArmOrder> make_load_orders(std::uint64_t seed, int replicates) {
    std::vector<ArmOrder> orders;
    for (std::uint64_t block = 0; orders.size() < static_cast<std::size_t>(replicates); ++block) {
        std::vector<ArmOrder> six(arm_orders().begin(), arm_orders().end());
        Random(seed, RandomPurpose::load_orders, block).shuffle(six);
        orders.insert(orders.end(), six.begin(), six.end());
    }
    orders.resize(static_cast<std::size_t>(replicates));
    return orders;
}

}  // namespace

bool is_output_rule(const std::string& rule) {
    if (rule == "bit-identical") return true;
    const std::string prefix = "tolerance:";
    if (rule.rfind(prefix, 0) != 0) return false;
    const std::string digits = rule.substr(prefix.size());
    char* end = nullptr;
    const double tolerance = std::strtod(digits.c_str(), &end);
    return !digits.empty() && *end == '\0' && std::isfinite(tolerance) && tolerance > 0.0 && tolerance < 1.0;
}

Plan make_plan(const PlanRequest& request) {
    validate(request);
    Plan plan;
    plan.experiment = request.experiment;
    plan.experiment_version = request.experiment_version;
    plan.seed = request.seed;
    plan.replicates = request.replicates;
    plan.super_rounds = request.super_rounds;
    plan.tokens = request.tokens;
    plan.position = request.position;
    plan.threads = request.threads;
    plan.margin = request.margin;
    plan.confidence = request.confidence;
    plan.control_confidence = request.control_confidence;
    plan.output_rule = request.output_rule;
    plan.policy = request.policy;
    plan.control_sd = request.control_sd;
    plan.looks = obrien_fleming_looks(request.replicates, 1.0 - request.confidence);
    plan.load_orders = make_load_orders(request.seed, request.replicates);

    const std::vector<SuperRound>& orders = super_round_orders();
    constexpr std::uint64_t padding_choices = padding_limit_bytes / padding_step_bytes + 1;
    for (int replicate = 0; replicate < request.replicates; ++replicate) {
        const auto index = static_cast<std::uint64_t>(replicate);
        Random schedule(request.seed, RandomPurpose::schedules, index);
        std::vector<SuperRound>& sequences = plan.schedules.emplace_back();
        for (int i = 0; i < request.super_rounds; ++i) sequences.push_back(orders[schedule.below(orders.size())]);
        Random padding(request.seed, RandomPurpose::paddings, index);
        plan.paddings.push_back(static_cast<std::int64_t>(padding.below(padding_choices)) * padding_step_bytes);
    }
    return plan;
}

std::vector<std::int32_t> teacher_tokens(std::uint64_t seed, int count, int vocab) {
    if (count < 1) refuse("A token sequence needs at least one token; " + std::to_string(count) + " were asked for.");
    if (vocab < 1) refuse("The model reports a vocabulary of " + std::to_string(vocab) + " tokens; it must have at least one.");
    Random random(seed, RandomPurpose::tokens);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocab)));
    return tokens;
}

}  // namespace kestrel
