#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "reports/doctor.hpp"
#include "reports/format.hpp"
#include "runner/identity/elf_note.hpp"
#include "runner/identity/manifest.hpp"
#include "runner/main/cache_settings.hpp"
#include "runner/main/commands.hpp"
#include "runner/main/paths.hpp"
#include "runner/main/print.hpp"
#include "runner/platform/host.hpp"
#include "runner/platform/lock.hpp"
#include "store/repository.hpp"

namespace kestrel::cli {
namespace {

using Items = std::vector<DoctorItem>;

void database_items(const std::string& database, Items& items) {
    try {
        Store store(database);
        items.push_back({"database", DoctorStatus::ok, database + ", " + std::to_string(store.list_sessions().size()) + " sessions", ""});
        const auto running = store.running_sessions();
        if (!running.empty()) {
            items.push_back({"sessions", DoctorStatus::ok, std::to_string(running.size()) + " recorded as running",
                             "if no runner is alive, the next run marks them as aborted"});
        }
    } catch (const Error& error) {
        items.push_back({"database", DoctorStatus::missing, error.what(), "name another one with --db FILE"});
    }
}

void engine_items(Items& items) {
    const Found engines = find_engines();
    if (engines.empty()) {
        items.push_back({"engines", DoctorStatus::missing, "none in " + library_directory(), "build the target kestrel_engines"});
    }
    for (const auto& [name, path] : engines) {
        try {
            const Manifest manifest = parse_manifest(read_engine_library(path).manifest_json);
            items.push_back(
                {"engine " + name, DoctorStatus::ok, path + ", " + std::to_string(manifest.units.size()) + " sources in its manifest", ""});
        } catch (const Error& error) {
            items.push_back({"engine " + name, DoctorStatus::missing, error.what(), "rebuild it with this project's build"});
        }
    }
}

void config_items(Items& items) {
    const auto count = find_experiments().size();
    items.push_back({"experiments", count > 0 ? DoctorStatus::ok : DoctorStatus::missing,
                     std::to_string(count) + " in " + config_directory(), count > 0 ? "" : "install the project's configs"});
}

void machine_items(Items& items) {
    items.push_back({"cpu", DoctorStatus::ok, platform::cpu_device_name(), ""});
    const auto facts = platform::environment_facts();
    const std::string governor = facts.at("cpu.governor");
    if (governor == "not readable") {
        items.push_back({"cpu governor", DoctorStatus::not_checked, "this system does not show it (usual in virtual machines)", ""});
    } else {
        items.push_back({"cpu governor", DoctorStatus::ok, governor,
                         governor == "performance" ? "" : "the governor 'performance' gives narrower intervals"});
    }
    const auto busy = platform::busy_cores(500);
    items.push_back({"load", busy ? DoctorStatus::ok : DoctorStatus::not_checked,
                     busy ? fixed_text(*busy, 2) + " cores kept busy by other programs" : "this system does not show it",
                     busy && *busy > 0.1 ? "stop them before measuring, or expect wider intervals" : ""});
    try {
        const platform::DeviceLock lock("cpu");
        items.push_back({"device lock", DoctorStatus::ok, "free (" + lock.path() + ")", ""});
    } catch (const Error& error) {
        items.push_back({"device lock", DoctorStatus::missing, error.what(), "wait for the other runner"});
    }
    if (std::filesystem::exists("/dev/nvidiactl")) {
        items.push_back({"gpu", DoctorStatus::ok, "an NVIDIA driver is here", ""});
    } else {
        items.push_back(
            {"gpu", DoctorStatus::not_checked, "no NVIDIA driver", "CUDA engines can be compared, not measured, on this machine"});
    }
}

void cache_items(Items& items) {
    try {
        const session::CacheSettings settings = cache_settings();
        if (settings.folder.empty() || settings.limit == 0) {
            const bool off = settings.limit == 0;
            items.push_back({"weight cache", DoctorStatus::ok, off ? "none, KESTREL_AB_CACHE_LIMIT is 0" : "none, HOME is not set",
                             off ? "" : "name a folder with KESTREL_AB_CACHE"});
            return;
        }
        const session::CacheUsage usage = session::usage_of(settings);
        const auto gib = [](std::uint64_t bytes) { return fixed_text(static_cast<double>(bytes) / (1U << 30U), 2) + " GiB"; };
        items.push_back(
            {"weight cache", usage.problem.empty() ? DoctorStatus::ok : DoctorStatus::not_checked,
             settings.folder + ", " + std::to_string(usage.blocks) + " blocks, " + gib(usage.bytes) + " of at most " + gib(settings.limit),
             usage.problem.empty() ? "" : "not used: " + usage.problem});
    } catch (const Error& error) {
        items.push_back({"weight cache", DoctorStatus::missing, error.what(), "correct or unset it"});
    }
}

// Workers never see the environment, but an engine in production does.
void switch_items(Items& items) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        if (text.starts_with("VLLM_") || text.starts_with("KESTREL_LAUNCH=")) {
            items.push_back({"environment", DoctorStatus::ok, text + " is set",
                             "ignored here; an engine opened without a switch list would obey it: unset it"});
        }
    }
}

}  // namespace

ExitCode command_doctor(const CommonOptions& common) {
    Items items;
    database_items(database_path(common.database), items);
    engine_items(items);
    config_items(items);
    cache_items(items);
    machine_items(items);
    switch_items(items);
    print(
        common, [&] { return doctor_text(items); }, [&] { return doctor_json(items); });
    for (const DoctorItem& item : items) {
        if (item.status == DoctorStatus::missing) return ExitCode::invalid;
    }
    return ExitCode::pass;
}

}  // namespace kestrel::cli
