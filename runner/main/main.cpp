// kestrel-ab: parse, dispatch, turn errors into text and exit codes.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <functional>

#include "runner/main/commands.hpp"
#include "runner/session/worker.hpp"
#include "runner/telemetry/gpu_child.hpp"

namespace {

using kestrel::ExitCode;
namespace cli = kestrel::cli;

class Program {
  public:
    Program() : app_("Interleaved A/B performance-regression tests of LLM decode engines.", "kestrel-ab") {
        app_.set_version_flag("--version", KESTREL_VERSION);
        app_.require_subcommand(1);
        app_.footer(
            "Exit codes: 0 pass (FASTER, SAME, identical), 1 SLOWER or a failed check, 2 usage or configuration, 3 UNDECIDED,\n"
            "4 refused as not comparable, 5 aborted, INVALID or not checked, 6 storage or integrity.\n"
            "The database is --db, else $KESTREL_AB_DB, else $XDG_STATE_HOME/kestrel-ab/kestrel-ab.db.\n"
            "Loaded weights are kept in $KESTREL_AB_CACHE, else $XDG_CACHE_HOME/kestrel-ab, else ~/.cache/kestrel-ab, up to\n"
            "$KESTREL_AB_CACHE_LIMIT (64GiB; 0: none), for models from $KESTREL_AB_CACHE_MINIMUM (64MiB).");
        add_run();
        add_selftest();
        add_queries();
        add_diff();
        add_check();
        CLI::App* doctor = command("doctor", "What this machine can do, what is missing, and what to do about it", "kestrel-ab doctor");
        doctor->callback([this] { action_ = [this] { return cli::command_doctor(common_); }; });
    }

    int run(int argc, char** argv) {
        try {
            app_.parse(argc, argv);
        } catch (const CLI::ParseError& error) {
            return app_.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
        }
        return static_cast<int>(action_());
    }

  private:
    CLI::App* command(const std::string& name, const std::string& what, const std::string& example) {
        return command_of(app_, name, what, example);
    }

    CLI::App* command_of(CLI::App& parent, const std::string& name, const std::string& what, const std::string& example) {
        CLI::App* sub = parent.add_subcommand(name, what);
        sub->footer("Example:\n  " + example);
        sub->add_option("--db", common_.database, "Database file")->type_name("FILE");
        sub->add_flag("--json", common_.json, "Print JSON instead of text");
        return sub;
    }

    void add_run() {
        CLI::App* run = command("run", "Measure two builds against each other: plan, interleave, store, report",
                                "kestrel-ab run gdn-register\n"
                                "  kestrel-ab run --base old/libengine.so --candidate new/libengine.so --model mini-64l");
        run->add_option("experiment", run_.experiment, "An experiment's name (see 'kestrel-ab list') or file");
        run->add_option("--base", run_.base, "Base engine: name or library")->type_name("LIB");
        run->add_option("--candidate", run_.candidate, "Candidate engine: name or library")->type_name("LIB");
        run->add_option("--model", run_.model, "Model: name, description, or Hugging Face directory")->type_name("MODEL");
        run->add_option("--base-switch", run_.base_switches, "Runtime switch of base and control, NAME=VALUE; repeatable");
        run->add_option("--candidate-switch", run_.candidate_switches, "Runtime switch of the candidate, NAME=VALUE; repeatable");
        run->add_option("--policy", run_.policy, "Margin, error rates and length: a name in configs/policies/, or a file")
            ->type_name("POLICY");
        run->add_flag("--plan", run_.plan_only,
                      "Inspect the engines and print the plan, its duration and what it can find; measure nothing");
        run->add_option("--replicates", run_.replicates,
                        "Fresh worker processes at most; default: what earlier controls of this workload here ask for, else the policy's")
            ->check(CLI::Range(1, 600));
        run->add_option("--super-rounds", run_.super_rounds, "Super-rounds per replicate")->check(CLI::Range(1, 1000));
        run->add_option("--tokens", run_.tokens, "Timed tokens per window")->check(CLI::Range(2, 4096));
        run->add_option("--position", run_.position, "Tokens of context before the timed ones")->check(CLI::Range(0, 1 << 20));
        run->add_option("--threads", run_.threads, "Threads of the engine; 0: all")->check(CLI::Range(0, 1024));
        run->add_option("--margin", run_.margin_percent, "Smallest difference that matters, percent")->check(CLI::Range(0.001, 99.0));
        run->add_option("--seed", run_.seed, "Seed of the schedule; drawn and stored if not given");
        run->add_option("--patience", run_.patience_seconds,
                        "Seconds without a sign of life after which a worker counts as hung; "
                        "default 300 and 10 for each token of a window")
            ->check(CLI::Range(1, 86400));
        run->add_flag("--all-rounds", run_.all_rounds, "Print every round, not one line per super-round");
        run->add_flag("--aa", run_.measure_identical, "Measure a build against itself (no difference is required instead of one)");
        run->add_flag("--no-weight-cache", run_.no_weight_cache,
                      "Load the model in every replicate, not from the block kept in $KESTREL_AB_CACHE");
        run->add_flag("--verify-weights", run_.verify_weights,
                      "Load and digest the weights at inspection even if artifacts and model files are unchanged since an earlier one");
        run->callback([this] { action_ = [this] { return cli::command_run(common_, run_); }; });
    }

    void add_selftest() {
        CLI::App* selftest = command("selftest", "Sessions whose truth is known, and what they say about the service",
                                     "kestrel-ab selftest --aa --sessions 40\n  kestrel-ab selftest --planted 2 --sessions 40 --margin 1\n"
                                     "  kestrel-ab selftest --ledger");
        selftest->add_flag("--ledger", selftest_.ledger,
                           "False alarms, controls and findings of all sealed sessions, by host, device, engine and launch mode");
        selftest->add_flag("--aa", selftest_.aa, "An engine against itself");
        selftest
            ->add_option("--planted", selftest_.planted_percent,
                         "The CPU engine against itself with so many percent of useless work, calibrated by stopwatch; each session draws "
                         "whether there is any")
            ->check(CLI::Range(0.01, 100.0));
        selftest
            ->add_option("--calibrate-seconds", selftest_.calibrate_seconds,
                         "With --planted: seconds of stopwatch in each of ten processes")
            ->check(CLI::Range(0.01, 600.0))
            ->capture_default_str();
        selftest->add_option("--sessions", selftest_.sessions, "How many")->check(CLI::Range(1, 100000))->capture_default_str();
        selftest->add_option("--engine", selftest_.engine, "With --aa: name or library")->capture_default_str();
        selftest->add_option("--model", selftest_.run.model, "Model: name, description or file; default mini-64l");
        selftest->add_option("--policy", selftest_.run.policy, "Margin, error rates and length: a name or a file")->type_name("POLICY");
        selftest->add_option("--margin", selftest_.run.margin_percent, "Smallest difference that matters, percent")
            ->check(CLI::Range(0.001, 50.0));
        selftest->add_option("--replicates", selftest_.run.replicates, "Fresh worker processes at most")->check(CLI::Range(1, 600));
        selftest->add_option("--super-rounds", selftest_.run.super_rounds, "Super-rounds per replicate")->check(CLI::Range(1, 1000));
        selftest->add_option("--tokens", selftest_.run.tokens, "Timed tokens per window; default 16")->check(CLI::Range(2, 4096));
        selftest->add_option("--threads", selftest_.run.threads, "Threads of the engine; 0: all")->check(CLI::Range(0, 1024));
        selftest->add_option("--seed", selftest_.run.seed, "Seed of draws and schedules; drawn if not given");
        selftest->callback([this] { action_ = [this] { return cli::command_selftest(common_, selftest_); }; });
    }

    void add_queries() {
        CLI::App* list = command("list", "Experiments, models and engines found, and the sessions stored", "kestrel-ab list");
        list->callback([this] { action_ = [this] { return cli::command_list(common_); }; });

        CLI::App* show = command("show", "The report of a session, as text, JSON or a picture",
                                 "kestrel-ab show 3f2a --all-rounds\n  kestrel-ab show 3f2a --svg session.svg");
        show->add_option("session", show_.session, "Session id, or its beginning")->required();
        show->add_flag("--all-rounds", show_.all_rounds, "Print every round, not one line per super-round");
        show->add_option("--svg", show_.svg, "Draw it: replicates with interval and margin, and all rounds; - for standard output")
            ->type_name("FILE");
        show->callback([this] { action_ = [this] { return cli::command_show(common_, show_); }; });

        CLI::App* history =
            command("history", "Ratios over time, one series per experiment, workload, host and device", "kestrel-ab history gdn-register");
        history->add_option("experiment", experiment_, "Only this experiment");
        history->callback([this] { action_ = [this] { return cli::command_history(common_, experiment_); }; });

        CLI::App* compare =
            command("compare", "Say why two sessions cannot be compared, and what to run instead", "kestrel-ab compare 3f2a 90bc");
        compare->add_option("session", session_, "Session id, or its beginning")->required();
        compare->add_option("other", other_, "Another one")->required();
        compare->callback([this] { action_ = [this] { return cli::command_compare(common_, session_, other_); }; });
    }

    void add_diff() {
        CLI::App* diff = command("diff", "The one place in which two builds differ, or all of them and a refusal (exit 4)",
                                 "kestrel-ab diff lib/libkestrel_cpu_gemv_baseline.so lib/libkestrel_cpu.so");
        diff->add_option("base", diff_.base, "Engine: name or library")->required();
        diff->add_option("candidate", diff_.candidate, "Engine: name or library")->required();
        diff->add_option("--base-switch", diff_.base_switches, "Runtime switch of base, NAME=VALUE; repeatable");
        diff->add_option("--candidate-switch", diff_.candidate_switches, "Runtime switch of the candidate, NAME=VALUE; repeatable");
        diff->callback([this] { action_ = [this] { return cli::command_diff(common_, diff_); }; });
    }

    void add_check() {
        CLI::App* check = app_.add_subcommand("check", "Numeric checks of an engine against the truth engine or another implementation");
        check->require_subcommand(1);
        check->footer("Example:\n  kestrel-ab check gdn\n  kestrel-ab check model --model DIR --expected DIR/expected.safetensors");
        add_check_operators(*check, "gdn",
                            "The recurrent step of all variants, its convolution and gates, on shapes large, small and ragged");
        add_check_operators(*check, "rq", "Matrix times vector for every stored type");
        add_check_operators(*check, "attn", "Attention of one token, and the norm before it");
        CLI::App* model = command_of(*check, "model", "A whole model: hidden state, final norm, logits, argmax and greedy tokens",
                                     "kestrel-ab check model --engine kestrel_cpu --model mini-64l\n"
                                     "  kestrel-ab check model --engine kestrel_cpu --model tests/data/qwen35/bf16-64l"
                                     " --expected tests/data/qwen35/bf16-64l/expected.safetensors");
        add_check_engines(*model);
        model->add_option("--model", check_.model, "Model: name, description, or Hugging Face directory")->required();
        model->add_option("--expected", check_.expected, "safetensors with tokens, logits and greedy; instead of a reference engine");
        model->add_option("--switch", check_.switches, "Runtime switch, NAME=VALUE; repeatable");
        model
            ->add_option("--tolerance", check_.tolerance,
                         "Largest difference, relative; default with --expected 1e-4 of max |logit|, from 32 layers 5e-4; else derived")
            ->check(CLI::PositiveNumber);
        model->add_option("--tokens", check_.tokens, "Seeded tokens fed, without --expected")
            ->check(CLI::Range(1, 4096))
            ->capture_default_str();
        model->add_option("--greedy", check_.greedy, "Tokens decoded freely after them")->check(CLI::Range(0, 4096))->capture_default_str();
        model->add_option("--threads", check_.threads, "Threads of the engine; 0: all")->check(CLI::Range(0, 1024));
        model->callback([this] { action_ = [this] { return cli::command_check_model(common_, check_); }; });
    }

    void add_check_engines(CLI::App& sub) {
        sub.add_option("--engine", check_.engine, "Engine: name or library")->capture_default_str();
        sub.add_option("--reference", check_.reference, "Engine to compare with; default: libkestrel_truth.so beside the engine");
        sub.add_option("--seed", check_.seed, "Seed of the inputs")->capture_default_str();
    }

    void add_check_operators(CLI::App& check, const std::string& name, const std::string& what) {
        CLI::App* sub = command_of(check, name, what, "kestrel-ab check " + name + " --engine kestrel_cpu");
        add_check_engines(*sub);
        sub->callback([this, name] { action_ = [this, name] { return cli::command_check_operators(common_, check_, name); }; });
    }

    CLI::App app_;
    cli::CommonOptions common_;
    cli::RunOptions run_;
    cli::SelftestOptions selftest_;
    cli::DiffOptions diff_;
    cli::CheckOptions check_;
    cli::ShowOptions show_;
    std::string session_;
    std::string other_;
    std::string experiment_;
    std::function<ExitCode()> action_;
};

}  // namespace

int main(int argc, char** argv) {
    // Not commands of the user's: how the supervisor starts its workers, and the process that reads the GPU.
    if (argc == 2 && std::strcmp(argv[1], "__worker") == 0) kestrel::session::worker_main();
    if (argc >= 2 && std::strcmp(argv[1], kestrel::telemetry::gpu_child_argument) == 0) {
        kestrel::telemetry::gpu_child_main({argv + 2, argv + argc});
    }

    // Messages go to standard error; standard output holds only what was asked for.
    spdlog::set_default_logger(spdlog::stderr_color_st("kestrel-ab"));
    spdlog::set_pattern("%n: %^%l%$: %v");
    try {
        return Program().run(argc, argv);
    } catch (const kestrel::Error& error) {
        spdlog::error("{}", error.what());
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return static_cast<int>(ExitCode::invalid);
    }
}
