// list, show, history, compare: what is stored, read-only.
#include <filesystem>
#include <fstream>

#include "reports/compare.hpp"
#include "reports/history.hpp"
#include "reports/inventory.hpp"
#include "reports/session_svg.hpp"
#include "reports/session_text.hpp"
#include "runner/main/commands.hpp"
#include "runner/main/paths.hpp"
#include "runner/main/print.hpp"
#include "store/repository.hpp"

namespace kestrel::cli {
namespace {

// Absent as long as nothing was ever stored: that is no error for a query.
std::optional<Store> open_existing(const std::string& path) {
    if (!std::filesystem::exists(path)) return std::nullopt;
    return std::optional<Store>(std::in_place, path, OpenMode::read_only);
}

Store open_required(const std::string& path) {
    if (!std::filesystem::exists(path)) {
        throw Error(ExitCode::usage, "no database at " + path + " yet; 'kestrel-ab run gdn-register' makes it, or name another with --db");
    }
    return Store(path, OpenMode::read_only);
}

std::vector<SessionSummary> sessions_in(const std::string& path, const std::string& experiment) {
    auto store = open_existing(path);
    if (!store) return {};
    SessionFilter filter;
    if (!experiment.empty()) filter.experiment = experiment;
    return store->list_sessions(filter);
}

std::vector<std::string> names_of(const Found& found) {
    std::vector<std::string> names;
    names.reserve(found.size());
    for (const auto& [name, path] : found) names.push_back(name);
    return names;
}

}  // namespace

ExitCode command_list(const CommonOptions& common) {
    const std::string database = database_path(common.database);
    const Inventory inventory{names_of(find_experiments()), names_of(find_models()), names_of(find_engines()), sessions_in(database, ""),
                              database};
    print(
        common, [&] { return inventory_text(inventory); }, [&] { return inventory_json(inventory); });
    return ExitCode::pass;
}

ExitCode command_show(const CommonOptions& common, const ShowOptions& options) {
    const std::string database = database_path(common.database);
    const Session found = open_required(database).load_session(options.session);
    if (options.svg.empty()) {
        print_session(common, found, database, options.all_rounds);
    } else if (options.svg == "-") {
        print(
            common, [&] { return session_svg(found); }, [&] { return session_json(found, database); });
    } else {
        std::ofstream file(options.svg, std::ios::binary);
        file << session_svg(found) << std::flush;
        if (!file) throw Error(ExitCode::storage, options.svg + " cannot be written; name another file with --svg");
    }
    return ExitCode::pass;
}

ExitCode command_history(const CommonOptions& common, const std::string& experiment) {
    const std::string database = database_path(common.database);
    const std::vector<SessionSummary> sessions = sessions_in(database, experiment);
    print(
        common, [&] { return history_text(sessions) + "\ndatabase: " + database + "\n"; }, [&] { return history_json(sessions); });
    return ExitCode::pass;
}

ExitCode command_compare(const CommonOptions& common, const std::string& one, const std::string& other) {
    Store store = open_required(database_path(common.database));
    const Session a = store.load_session(one);
    const Session b = store.load_session(other);
    print(
        common, [&] { return compare_text(a, b); }, [&] { return compare_json(a, b); });
    return ExitCode::not_comparable;
}

}  // namespace kestrel::cli
