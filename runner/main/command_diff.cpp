#include "reports/diff.hpp"
#include "runner/identity/difference.hpp"
#include "runner/identity/elf_note.hpp"
#include "runner/identity/manifest.hpp"
#include "runner/identity/sha256.hpp"
#include "runner/main/commands.hpp"
#include "runner/main/paths.hpp"
#include "runner/main/print.hpp"
#include "runner/session/experiment.hpp"

namespace kestrel::cli {
namespace {

std::vector<SwitchSetting> parse_switches(const std::vector<std::string>& texts) {
    std::vector<SwitchSetting> switches;
    switches.reserve(texts.size());
    for (const std::string& text : texts) switches.push_back(session::parse_switch(text));
    return switches;
}

}  // namespace

ExitCode command_diff(const CommonOptions& common, const DiffOptions& options) {
    const std::string base = engine_path(options.base);
    const std::string candidate = engine_path(options.candidate);
    const Difference difference =
        compare(parse_manifest(read_engine_library(base).manifest_json), parse_switches(options.base_switches),
                parse_manifest(read_engine_library(candidate).manifest_json), parse_switches(options.candidate_switches));
    const DiffSide one{base, sha256_file(base)};
    const DiffSide other{candidate, sha256_file(candidate)};
    require_explained(difference, one.sha256, other.sha256);
    std::vector<Place> places = difference.places;
    if (places.size() == 1) places = {the_one_place(difference)};  // with the objects that it changed
    print(
        common, [&] { return diff_text(one, other, places); }, [&] { return diff_json(one, other, places); });
    return difference.places.size() > 1 ? ExitCode::not_comparable : ExitCode::pass;
}

}  // namespace kestrel::cli
