#include <filesystem>
#include <nlohmann/json.hpp>

#include "reports/check.hpp"
#include "runner/main/commands.hpp"
#include "runner/main/paths.hpp"
#include "runner/main/print.hpp"
#include "runner/session/supervisor.hpp"

namespace kestrel::cli {
namespace {

// Rounding grows with depth: float64 against the float32 expectations of the fixtures differs by 1e-6 to 3e-6 of max |logit| at 4 layers
// and by 9e-5 at 64 (tests/data/README.md).
constexpr double shallow_tolerance = 1e-4;
constexpr double deep_tolerance = 5e-4;
constexpr int deep_layers = 32;

}  // namespace

ExitCode command_check_model(const CommonOptions& common, const CheckOptions& options) {
    std::vector<SwitchSetting> switches;
    for (const std::string& text : options.switches) switches.push_back(session::parse_switch(text));
    if (!std::filesystem::exists(options.expected)) throw Error(ExitCode::usage, "no file " + options.expected + " with expected outputs");
    session::CheckTolerance tolerance{shallow_tolerance, deep_tolerance, deep_layers};
    if (options.tolerance > 0.0) tolerance = {options.tolerance, options.tolerance, 0};
    const session::CheckResult result =
        session::check_model(engine_path(options.engine), model_path(options.model), std::filesystem::absolute(options.expected).string(),
                             tolerance, switches, options.threads);
    nlohmann::json checked = nlohmann::json::parse(result.json);
    print(
        common, [&] { return check_text(checked); }, [&] { return checked; });
    return result.passed ? ExitCode::pass : ExitCode::failed;
}

}  // namespace kestrel::cli
