// Message "checked": {check, engine, reference, seed, passed, compared, results: [...], not_available: [{operator, variant, why}]}, a
// result being {operator, variant, shape, output, differing, elements, max_abs, max_rel, bound, used, against_default, passed}: elements
// whose bits differ from the reference's, the largest difference as such and relative to the largest reference value, the largest bound,
// the largest share of its own bound that an element used, and elements whose bits differ from the engine's default variant's (null for
// itself).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "runner/record/error.hpp"
#include "runner/session/operator_cases.hpp"
#include "runner/session/worker_internal.hpp"

namespace kestrel::session {
namespace {

using Tensors = std::vector<plugin::OperatorTensor>;

std::size_t differing_bits(const std::vector<float>& a, const std::vector<float>& b) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], sizeof a[i]) != 0 ? 1U : 0U;
    return count;
}

// JSON has no infinity.
nlohmann::json number(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

nlohmann::json compare(const OperatorCase& one, std::size_t output, const std::vector<float>& found, const std::vector<float>& truth) {
    double largest = 0.0;
    double magnitude = 0.0;
    double used = 0.0;
    double bound = 0.0;
    bool passed = true;
    for (std::size_t i = 0; i < found.size(); ++i) {
        // The reference's result is rounded to f32 as well.
        const double allowed =
            one.bounds[output][i] + (one.bounds[output][i] > 0.0 ? 0x1p-24 * std::fabs(static_cast<double>(truth[i])) : 0.0);
        const double difference = std::fabs(static_cast<double>(found[i]) - static_cast<double>(truth[i]));
        if (!(difference <= allowed)) passed = false;  // so that a NaN fails
        if (!(difference <= largest)) largest = std::isfinite(difference) ? difference : INFINITY;
        if (difference > 0.0) used = std::max(used, allowed > 0.0 ? difference / allowed : INFINITY);
        magnitude = std::max(magnitude, std::fabs(static_cast<double>(truth[i])));
        bound = std::max(bound, allowed);
    }
    return {{"operator", one.op},
            {"shape", one.shape},
            {"output", one.output_names[output]},
            {"differing", differing_bits(found, truth)},
            {"elements", found.size()},
            {"max_abs", number(largest)},
            {"max_rel", number(magnitude > 0.0 ? largest / magnitude : largest)},
            {"bound", bound},
            {"used", number(used)},
            {"against_default", nullptr},
            {"passed", passed}};
}

// Which ways of computing the operator the engine has: its default, then the values of its switch.
std::vector<std::string> variants_of(const OperatorCase& one, const plugin::EngineLibrary& engine) {
    if (!one.stored_type.empty()) return {one.stored_type};
    std::vector<std::string> variants{""};
    if (one.op != "gdn_delta") return variants;
    for (const auto& description : engine.switches()) {
        if (description.name == "VLLM_CUDA_GDN_DELTA")
            variants.insert(variants.end(), description.values.begin(), description.values.end());
    }
    return variants;
}

class OperatorCheck {
  public:
    OperatorCheck(const plugin::EngineLibrary& engine, const plugin::EngineLibrary& reference) : engine_(&engine), reference_(&reference) {}

    void run(const OperatorCase& one) {
        Tensors truth = one.outputs;
        if (const auto why = reference_->run_operator(one.op, one.stored_type, one.inputs, truth)) {
            throw Error(ExitCode::invalid,
                        "the reference cannot run " + one.op + " " + one.stored_type + ": " + *why + "; name another with --reference");
        }
        Tensors by_default;
        for (const std::string& variant : variants_of(one, *engine_)) {
            Tensors found = one.outputs;
            // A value that no operator leaves by chance: an element that is not written must not look right.
            for (auto& tensor : found) std::fill(tensor.values.begin(), tensor.values.end(), NAN);
            if (const auto why = engine_->run_operator(one.op, variant, one.inputs, found)) {
                note_missing(one.op, variant, *why);
                continue;
            }
            principal_ |= one.principal;
            for (std::size_t i = 0; i < found.size(); ++i) {
                nlohmann::json result = compare(one, i, found[i].values, truth[i].values);
                result["variant"] = variant.empty() ? "default" : variant;
                if (!by_default.empty()) {
                    const std::size_t differing = differing_bits(found[i].values, by_default[i].values);
                    result["against_default"] = differing;
                    if (differing != 0) result["passed"] = false;
                }
                passed_ &= result.at("passed").get<bool>();
                results_.push_back(std::move(result));
            }
            if (variant.empty()) by_default = std::move(found);
        }
    }

    [[nodiscard]] bool principal() const { return principal_; }
    [[nodiscard]] bool passed() const { return passed_; }
    [[nodiscard]] const nlohmann::json& results() const { return results_; }
    [[nodiscard]] const nlohmann::json& missing() const { return missing_; }

  private:
    void note_missing(const std::string& op, const std::string& variant, const std::string& why) {
        if (seen_.emplace(op, variant).second) missing_.push_back({{"operator", op}, {"variant", variant}, {"why", why}});
    }

    const plugin::EngineLibrary* engine_;
    const plugin::EngineLibrary* reference_;
    bool principal_ = false;
    bool passed_ = true;
    std::set<std::pair<std::string, std::string>> seen_;
    nlohmann::json results_ = nlohmann::json::array();
    nlohmann::json missing_ = nlohmann::json::array();
};

}  // namespace

void run_check_operators(const Job& job, Reporter& reporter) {
    reporter.phase("load library", ArmRole::base);
    const plugin::EngineLibrary engine(job.arms.at(0).library);
    reporter.phase("load the reference");
    const plugin::EngineLibrary reference(job.reference);
    OperatorCheck check(engine, reference);
    for (const OperatorCase& one : operator_cases(job.operators, job.seed)) {
        reporter.phase(one.op + " " + one.stored_type + " " + one.shape, ArmRole::base);
        check.run(one);
    }
    reporter.send({{"type", "checked"},
                   {"check", job.operators},
                   {"engine", engine.engine_name()},
                   {"reference", reference.engine_name()},
                   {"seed", job.seed},
                   {"results", check.results()},
                   {"not_available", check.missing()},
                   {"compared", check.principal()},
                   {"passed", check.passed() && check.principal()}});
}

}  // namespace kestrel::session
