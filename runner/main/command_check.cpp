#include <filesystem>
#include <nlohmann/json.hpp>

#include "reports/check.hpp"
#include "runner/main/commands.hpp"
#include "runner/main/paths.hpp"
#include "runner/main/print.hpp"
#include "runner/session/checks.hpp"
#include "runner/session/experiment.hpp"

namespace kestrel::cli {
namespace {

// Rounding grows with depth: float64 against the float32 expectations of the fixtures differs by 1e-6 to 3e-6 of max |logit| at 4 layers
// and by 9e-5 at 64 (tests/data/README.md).
constexpr double shallow_tolerance = 1e-4;
constexpr double deep_tolerance = 5e-4;
constexpr int deep_layers = 32;

// The truth engine lies where the engine under test does; an engine of somebody else's has the one that came with this program.
std::string reference_path(const CheckOptions& options, const std::string& engine) {
    if (!options.reference.empty()) return engine_path(options.reference);
    const std::filesystem::path beside = std::filesystem::path(engine).parent_path() / "libkestrel_truth.so";
    return std::filesystem::exists(beside) ? beside.string() : engine_path("kestrel_truth");
}

ExitCode finish(const CommonOptions& common, const session::CheckResult& result) {
    const nlohmann::json checked = nlohmann::json::parse(result.json);
    print(
        common, [&] { return check_text(checked); }, [&] { return checked; });
    if (!checked.value("compared", true)) return ExitCode::invalid;
    return result.passed ? ExitCode::pass : ExitCode::failed;
}

}  // namespace

ExitCode command_check_model(const CommonOptions& common, const CheckOptions& options) {
    session::ModelCheck what{engine_path(options.engine), model_path(options.model), {}, options.threads};
    for (const std::string& text : options.switches) what.switches.push_back(session::parse_switch(text));
    if (options.expected.empty()) {
        return finish(common, session::check_reference(what, {.library = reference_path(options, what.library),
                                                              .seed = options.seed,
                                                              .tokens = options.tokens,
                                                              .greedy = options.greedy,
                                                              .tolerance = options.tolerance}));
    }
    if (!options.reference.empty()) throw Error(ExitCode::usage, "--expected and --reference are two ways to check; give one of them");
    if (!std::filesystem::exists(options.expected)) throw Error(ExitCode::usage, "no file " + options.expected + " with expected outputs");
    session::CheckTolerance tolerance{shallow_tolerance, deep_tolerance, deep_layers};
    if (options.tolerance > 0.0) tolerance = {options.tolerance, options.tolerance, 0};
    return finish(common, session::check_expected(what, std::filesystem::absolute(options.expected).string(), tolerance));
}

ExitCode command_check_operators(const CommonOptions& common, const CheckOptions& options, const std::string& operators) {
    const std::string engine = engine_path(options.engine);
    return finish(common, session::check_operators(operators, engine, reference_path(options, engine), options.seed));
}

}  // namespace kestrel::cli
