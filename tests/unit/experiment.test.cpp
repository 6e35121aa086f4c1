#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/session/experiment.hpp"
#include "runner/session/job.hpp"

using namespace kestrel;

namespace {

const std::string good = R"(name = "x"
version = 2
question = "q"
[base]
engine = "a"
switches = { S = "1" }
[candidate]
engine = "b"
[workload]
model = "m"
tokens = 8
[plan]
replicates = 12
margin_percent = 0.5
)";

std::string read_error(const std::string& text) {
    const auto path = std::filesystem::temp_directory_path() / "kestrel_experiment_test.toml";
    std::ofstream(path) << text;
    try {
        (void)session::read_experiment(path.string());
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::usage);
        return error.what();
    }
    return "accepted";
}

std::string with(std::string what, const std::string& instead) {
    const auto at = good.find(what);
    REQUIRE(at != std::string::npos);
    return good.substr(0, at) + instead + good.substr(at + what.size());
}

}  // namespace

TEST_CASE("experiment: every key is read") {
    const auto path = std::filesystem::temp_directory_path() / "kestrel_experiment_good.toml";
    std::ofstream(path) << good;
    const session::Experiment read = session::read_experiment(path.string());
    CHECK(read.name == "x");
    CHECK(read.version == 2);
    CHECK(read.base.engine == "a");
    CHECK(read.base.switches == std::vector<SwitchSetting>{{"S", "1"}});
    CHECK(read.candidate.switches.empty());
    CHECK(read.tokens == 8);
    CHECK(read.replicates.value() == 12);
    CHECK(read.margin.value() == Approx(0.005));
}

TEST_CASE("experiment: what the plan leaves out is the policy's") {
    const auto path = std::filesystem::temp_directory_path() / "kestrel_experiment_policy.toml";
    std::ofstream(path) << with("replicates = 12\nmargin_percent = 0.5", "policy = \"release\"");
    const session::Experiment read = session::read_experiment(path.string());
    CHECK(read.policy == "release");
    CHECK_FALSE(read.replicates);
    CHECK_FALSE(read.super_rounds);
    CHECK_FALSE(read.margin);
}

TEST_CASE("experiment: mistakes are named") {
    using Catch::Matchers::Contains;
    CHECK_THAT(read_error(with("tokens = 8", "token = 8")), Contains("unknown key 'token'") && Contains("tokens"));
    CHECK_THAT(read_error(with("tokens = 8", "tokens = 0")), Contains("'tokens' must be an integer from 2"));
    CHECK_THAT(read_error(with("tokens = 8", "tokens = 8.5")), Contains("'tokens' must be an integer"));
    CHECK_THAT(read_error(with("margin_percent = 0.5", "margin_percent = 0.0")), Contains("margin_percent"));
    CHECK_THAT(read_error(with("model = \"m\"", "")), Contains("'model' is missing"));
    CHECK_THAT(read_error(with("[candidate]\nengine = \"b\"\n", "")), Contains("[candidate] is missing"));
    CHECK_THAT(read_error(with("S = \"1\"", "S = 1")), Contains("switch 'S' must be a string"));
    CHECK_THAT(read_error(with("[plan]", "[plan")), Contains("line"));
}

TEST_CASE("experiment: a switch on the command line is NAME=VALUE") {
    CHECK(session::parse_switch("A=b=c") == SwitchSetting{"A", "b=c"});
    CHECK(session::parse_switch("A=") == SwitchSetting{"A", ""});
    CHECK_THROWS_AS(session::parse_switch("A"), Error);
    CHECK_THROWS_AS(session::parse_switch("=b"), Error);
}

TEST_CASE("job: what the supervisor sends is what the worker reads") {
    session::Job job;
    job.kind = session::JobKind::replicate;
    job.replicate = 3;
    job.model = "some\nmodel";
    job.threads = 2;
    job.position = 5;
    job.tokens = {1, 2, 3};
    job.arms = {{ArmRole::candidate, "/lib", {{"S", "v"}}, "ab12"}, {ArmRole::base, "/lib2", {}, "cd34"}};
    job.arms[1].context = {"/folder/context0.state", "ef56"};
    job.padding = 128;
    job.schedule.resize(2);
    job.schedule[1].fill(ArmRole::control);
    const std::string line = encode(job);
    CHECK(line.find('\n') == std::string::npos);
    const session::Job read = session::decode_job(line);
    CHECK(read.kind == job.kind);
    CHECK(read.replicate == 3);
    CHECK(read.model == job.model);
    CHECK(read.tokens == job.tokens);
    CHECK(read.arms == job.arms);
    CHECK(read.schedule == job.schedule);
    CHECK(read.padding == 128);
}
