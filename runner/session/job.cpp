#include "runner/session/job.hpp"

#include <stdexcept>

#include "runner/record/json.hpp"

namespace kestrel::session {
namespace {

constexpr std::array<const char*, 6> kind_names{"inspect", "context", "replicate", "check", "check_operators", "stopwatch"};

JobKind kind_from(const std::string& name) {
    for (std::size_t i = 0; i < kind_names.size(); ++i) {
        if (name == kind_names[i]) return static_cast<JobKind>(i);
    }
    throw std::invalid_argument("not a job: " + name);
}

}  // namespace

std::string encode(const Job& job) {
    nlohmann::json arms = nlohmann::json::array();
    for (const JobArm& arm : job.arms)
        arms.push_back({{"role", arm.role},
                        {"library", arm.library},
                        {"switches", arm.switches},
                        {"artifact", arm.artifact},
                        {"context_path", arm.context.path},
                        {"context_sha256", arm.context.sha256}});
    return dump_json({{"kind", kind_names.at(static_cast<std::size_t>(job.kind))},
                      {"replicate", job.replicate},
                      {"model", job.model},
                      {"threads", job.threads},
                      {"position", job.position},
                      {"tokens", job.tokens},
                      {"arms", arms},
                      {"padding", job.padding},
                      {"schedule", job.schedule},
                      {"expected", job.expected},
                      {"reference", job.reference},
                      {"operators", job.operators},
                      {"seed", job.seed},
                      {"check_tokens", job.check_tokens},
                      {"check_greedy", job.check_greedy},
                      {"shallow_tolerance", job.shallow_tolerance},
                      {"deep_tolerance", job.deep_tolerance},
                      {"deep_layers", job.deep_layers},
                      {"cache_folder", job.cache.folder},
                      {"cache_limit", job.cache.limit},
                      {"cache_minimum", job.cache.minimum},
                      {"verify_weights", job.cache.verify},
                      {"weights_digest", job.weights_digest},
                      {"weights_block", job.weights_block},
                      {"seconds", job.seconds}});
}

Job decode_job(const std::string& line) {
    const nlohmann::json j = parse_json(line);
    Job job;
    job.kind = kind_from(j.at("kind").get<std::string>());
    job.replicate = j.at("replicate").get<int>();
    job.model = j.at("model").get<std::string>();
    job.threads = j.at("threads").get<int>();
    job.position = j.at("position").get<int>();
    job.tokens = j.at("tokens").get<std::vector<std::int32_t>>();
    for (const nlohmann::json& arm : j.at("arms")) {
        job.arms.push_back({arm.at("role").get<ArmRole>(),
                            arm.at("library").get<std::string>(),
                            arm.at("switches").get<std::vector<SwitchSetting>>(),
                            arm.at("artifact").get<std::string>(),
                            {arm.at("context_path").get<std::string>(), arm.at("context_sha256").get<std::string>()}});
    }
    job.padding = j.at("padding").get<std::int64_t>();
    job.schedule = j.at("schedule").get<std::vector<std::array<ArmRole, 18>>>();
    job.expected = j.at("expected").get<std::string>();
    job.reference = j.at("reference").get<std::string>();
    job.operators = j.at("operators").get<std::string>();
    job.seed = j.at("seed").get<std::uint64_t>();
    job.check_tokens = j.at("check_tokens").get<int>();
    job.check_greedy = j.at("check_greedy").get<int>();
    job.shallow_tolerance = j.at("shallow_tolerance").get<double>();
    job.deep_tolerance = j.at("deep_tolerance").get<double>();
    job.deep_layers = j.at("deep_layers").get<int>();
    job.cache.folder = j.at("cache_folder").get<std::string>();
    job.cache.limit = j.at("cache_limit").get<std::uint64_t>();
    job.cache.minimum = j.at("cache_minimum").get<std::uint64_t>();
    job.cache.verify = j.at("verify_weights").get<bool>();
    job.weights_digest = j.at("weights_digest").get<std::string>();
    job.weights_block = j.at("weights_block").get<std::string>();
    job.seconds = j.at("seconds").get<double>();
    return job;
}

}  // namespace kestrel::session
