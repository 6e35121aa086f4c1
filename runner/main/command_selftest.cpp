// selftest: sessions whose truth is known, and what they say about the service.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "reports/format.hpp"
#include "reports/ledger.hpp"
#include "runner/main/commands.hpp"
#include "runner/main/desk.hpp"
#include "runner/main/paths.hpp"
#include "runner/main/print.hpp"
#include "runner/plan/random.hpp"
#include "runner/record/names.hpp"
#include "runner/session/stopwatch.hpp"
#include "runner/stats/ledger.hpp"
#include "store/stamp.hpp"

namespace kestrel::cli {
namespace {

constexpr const char* planted_engine = "kestrel_planted";
constexpr const char* planted_switch = "KESTREL_PLANTED_WASTE";

std::vector<SwitchSetting> waste(long units) {
    return {{planted_switch, std::to_string(units)}};
}

// The units of waste that come nearest to the share wanted, and what they cost by stopwatch.
struct Calibration {
    long units = 0;
    session::StopwatchReading reading;
};

// 0 to 8, then four values for each doubling: what the planted engine's switch takes.
long nearest_setting(double units) {
    long best = 1;
    for (long octave = 4; octave <= (1L << 16); octave *= 2) {
        for (long quarter = 0; quarter < 4; ++quarter) {
            const long value = octave + quarter * octave / 4;
            if (std::abs(std::log(static_cast<double>(value) / units)) < std::abs(std::log(static_cast<double>(best) / units)))
                best = value;
        }
    }
    return best;
}

Calibration calibrate(const Desk& desk, const session::RunRequest& request, const SelftestOptions& options) {
    session::StopwatchRequest wanted;
    wanted.library = request.base_library;
    wanted.model = request.model_path;
    wanted.work_directory = request.work_directory;
    wanted.base = waste(0);
    wanted.threads = request.experiment.threads;
    wanted.tokens = request.experiment.tokens;
    // First what a unit costs, from as many as cannot be missed; then the setting itself, longer.
    constexpr double unmistakable = 0.2;
    constexpr long most_units = 1L << 16;
    wanted.processes = 2;
    wanted.seconds = std::min(1.0, options.calibrate_seconds);
    long probe_units = 1L << 10;
    double slower = 0.0;
    for (;; probe_units *= 4) {
        wanted.other = waste(probe_units);
        slower = std::expm1(-session::read_stopwatch(wanted, desk.lock()).d);
        if (slower > unmistakable || probe_units >= most_units) break;
    }
    if (!(slower > 0.0)) throw Error(ExitCode::invalid, "wasted work does not show on the stopwatch; is the machine busy with other work?");
    const double share = slower / static_cast<double>(probe_units);
    Calibration calibration;
    calibration.units = nearest_setting(options.planted_percent / 100.0 / share);
    wanted.other = waste(calibration.units);
    wanted.processes = 10;
    wanted.seconds = options.calibrate_seconds;
    calibration.reading = session::read_stopwatch(wanted, desk.lock());
    return calibration;
}

// Sessions of one self-test, as they come.
class Progress {
  public:
    Progress(const CommonOptions& common, int sessions) : quiet_(common.json), sessions_(sessions) {}
    void show(const LedgerEntry& entry) {
        ++done_;
        seconds_ += entry.seconds;
        width_ += (entry.candidate.hi - entry.candidate.lo) / 2.0;
        if (quiet_) return;
        std::cout << done_ << "/" << sessions_ << "  " << name_of(entry.verdict) << "  " << interval_text(entry.candidate) << "  control "
                  << interval_text(entry.control) << "  K = " << entry.candidate.replicates << ", " << fixed_text(entry.seconds, 0) << " s";
        if (entry.planted_d) std::cout << "  truth " << log_ratio_text(*entry.planted_d);
        std::cout << "  session " << short_id(entry.uuid) << std::endl;
    }
    void finish() const {
        if (quiet_ || done_ == 0) return;
        std::cout << "half-width of the interval on average " << percent_text(100.0 * width_ / done_, 3) << " in "
                  << fixed_text(seconds_ / done_, 0) << " s a session\n\n";
    }

  private:
    bool quiet_;
    int sessions_;
    int done_ = 0;
    double seconds_ = 0.0;
    double width_ = 0.0;
};

LedgerEntry entry_of(Desk& desk, const Session& session) {
    for (LedgerEntry& entry : desk.store().ledger({.workload_sha256 = session.workload.sha256, .host = session.host, .limit = 5})) {
        if (entry.uuid == session.uuid) return entry;
    }
    throw Error(ExitCode::storage, "session " + session.uuid + " was stored but is not in the ledger");
}

// A false alarm in a known-equal session, or a planted difference missed, is judged by what chance explains: false alarms above one in
// twenty, found ones below four in five.
ExitCode judge(const LedgerRow& row) {
    const bool alarms = row.false_alarms.of > 0 && row.false_alarms.lo > 0.05;
    const bool missed = row.found.of > 0 && row.found.hi < 0.8;
    return alarms || missed ? ExitCode::failed : ExitCode::pass;
}

ExitCode print_rows(const CommonOptions& common, const std::vector<LedgerRow>& rows) {
    print(
        common, [&] { return ledger_text(rows); }, [&] { return ledger_json(rows); });
    return ExitCode::pass;
}

ExitCode run_sessions(const CommonOptions& common, const SelftestOptions& options) {
    RunOptions run = options.run;
    const bool planted = options.planted_percent > 0.0;
    run.base = run.candidate = planted ? planted_engine : options.engine;
    if (run.model.empty()) run.model = "mini-64l";
    session::RunRequest request = request_for(common, run);
    request.experiment.name = planted ? "selftest-planted" : "selftest-aa";
    request.experiment.tokens = options.run.tokens.value_or(16);
    Desk desk(database_path(common.database));
    const std::uint64_t draw_seed = request.seed;
    Calibration calibration;
    if (planted) {
        calibration = calibrate(desk, request, options);
        if (!common.json) {
            std::cout << "planted: " << calibration.units << " units, by stopwatch "
                      << percent_text(100.0 * std::expm1(-calibration.reading.d), 3) << " slower (standard error "
                      << percent_text(100.0 * calibration.reading.standard_error, 3) << ", " << calibration.reading.processes
                      << " processes), " << ms_text(calibration.reading.ms_per_token) << " ms/token" << std::endl;
        }
    }
    Progress progress(common, options.sessions);
    std::vector<LedgerEntry> entries;
    for (int i = 0; i < options.sessions; ++i) {
        // Each session has its own schedule and its own draw; the draw's seed is told to no other part of the program.
        const auto index = static_cast<std::uint64_t>(i);
        Random draw(draw_seed, RandomPurpose::selftest, index);
        request.uuid = new_uuid();
        request.seed = draw.next() >> 1U;
        const bool slower = planted && draw.below(2) == 1;
        request.experiment.base.switches = planted ? waste(0) : std::vector<SwitchSetting>{};
        request.experiment.candidate.switches = planted ? waste(slower ? calibration.units : 0) : std::vector<SwitchSetting>{};
        request.measure_identical = !slower;
        request.notes.clear();
        if (planted) {
            request.notes.emplace_back("planted", nlohmann::json{{"d", slower ? calibration.reading.d : 0.0},
                                                                 {"standard_error", calibration.reading.standard_error},
                                                                 {"units", slower ? calibration.units : 0},
                                                                 {"draw_seed", std::to_string(draw_seed)},
                                                                 {"draw", i}}
                                                      .dump());
        }
        entries.push_back(entry_of(desk, desk.run(request, desk.prepare(request), true)));
        progress.show(entries.back());
    }
    progress.finish();
    const std::vector<LedgerRow> rows = summarise(entries);
    print_rows(common, rows);
    ExitCode code = ExitCode::pass;
    for (const LedgerRow& row : rows) {
        if (judge(row) != ExitCode::pass) code = ExitCode::failed;
    }
    return code;
}

}  // namespace

ExitCode command_selftest(const CommonOptions& common, const SelftestOptions& options) {
    const bool planted = options.planted_percent > 0.0;
    if (static_cast<int>(options.ledger) + static_cast<int>(options.aa) + static_cast<int>(planted) != 1) {
        throw Error(ExitCode::usage, "selftest needs exactly one of --ledger, --aa and --planted PCT; see 'kestrel-ab selftest --help'");
    }
    if (options.ledger) {
        const std::string database = database_path(common.database);
        std::vector<LedgerEntry> entries;
        if (std::filesystem::exists(database)) entries = Store(database, OpenMode::read_only).ledger();
        return print_rows(common, summarise(entries));
    }
    return run_sessions(common, options);
}

}  // namespace kestrel::cli
