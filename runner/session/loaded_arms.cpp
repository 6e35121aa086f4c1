#include <algorithm>

#include "runner/record/error.hpp"
#include "runner/record/names.hpp"
#include "runner/session/worker_internal.hpp"

namespace kestrel::session {
namespace {

std::size_t round_up(std::size_t value, std::size_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

// Space for `bytes` that starts `padding` bytes into fresh pages, so that each replicate draws another placement.
std::unique_ptr<platform::HostMemory> padded(std::size_t bytes, std::size_t padding) {
    return std::make_unique<platform::HostMemory>(std::max<std::size_t>(bytes, 1) + padding);
}

}  // namespace

LoadedArms::LoadedArms(const Job& job, Reporter& reporter, bool compare_weights) {
    load_libraries(job, reporter);
    lend_memory(job, reporter, compare_weights);
    open(job, reporter);
}

LoadedArms::~LoadedArms() {
    for (Loaded& arm : arms_) arm.engine.reset();
    device_memory_.clear();
}

// Space for `bytes` that starts `offset` bytes into memory of the right kind; empty if nobody can allocate it.
std::span<std::byte> LoadedArms::lend(const plugin::MemoryNeeds& needs, std::size_t bytes, std::size_t offset) {
    if (!needs.device) {
        host_memory_.push_back(padded(bytes, offset));
        return {host_memory_.back()->data() + offset, bytes};
    }
    auto memory = arms_[0].library->allocate_device(bytes + offset);
    if (memory == nullptr) return {};
    device_memory_.push_back(std::move(memory));
    return {device_memory_.back()->data() + offset, bytes};
}

plugin::OpenRequest LoadedArms::request_for(const Job& job, const JobArm& arm) {
    plugin::OpenRequest request;
    request.model = job.model;
    request.switches = arm.switches;  // a list, even an empty one: the environment is ignored
    request.threads = static_cast<std::uint32_t>(job.threads);
    request.max_positions = static_cast<std::uint32_t>(std::max<std::size_t>(job.tokens.size(), inspected_tokens));
    return request;
}

void LoadedArms::load_libraries(const Job& job, Reporter& reporter) {
    for (const JobArm& arm : job.arms) {
        reporter.phase("load library", arm.role);
        Loaded loaded;
        loaded.role = arm.role;
        loaded.library = std::make_unique<plugin::EngineLibrary>(arm.library);
        arms_.push_back(std::move(loaded));
    }
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            if (arms_[i].library->load_address() == arms_[k].library->load_address()) {
                throw Error(ExitCode::invalid, "the loader gave two arms the same library: " + job.arms[i].library + " and " +
                                                   job.arms[k].library + "; arms must be byte copies, never links");
            }
        }
    }
}

void LoadedArms::lend_memory(const Job& job, Reporter& reporter, bool compare_weights) {
    std::vector<plugin::MemoryNeeds> needs;
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        reporter.phase("memory needs", arms_[i].role);
        if (const auto one = arms_[i].library->memory_needs(request_for(job, job.arms[i]))) needs.push_back(*one);
    }
    const bool alike =
        needs.size() == arms_.size() && std::all_of(needs.begin(), needs.end(), [&](const auto& one) { return one == needs[0]; });
    if (!alike) return;

    layout_id_ = needs[0].layout_id;
    const std::size_t offset = round_up(static_cast<std::size_t>(std::max<std::int64_t>(job.padding, 0)), needs[0].alignment);
    lent_ = {lend(needs[0], needs[0].weights_bytes, offset), lend(needs[0], needs[0].workspace_bytes, offset)};
    borrowed_ = lent_.weights.data() != nullptr && lent_.workspace.data() != nullptr;
    if (!borrowed_) {
        lent_ = {};
        return;
    }

    if (compare_weights) return inspect_weights(job, reporter, needs[0].device);
    fetch_weights(job, reporter, needs[0].device);
}

void LoadedArms::open(const Job& job, Reporter& reporter) {
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        reporter.phase("open", arms_[i].role);
        arms_[i].engine = std::make_unique<plugin::Engine>(arms_[i].library->open(request_for(job, job.arms[i]), lent_));
        const plugin::ModelInfo info = arms_[i].engine->info();
        if (i > 0 && info != info_) {
            throw Error(ExitCode::not_comparable, "the " + std::string(name_of(arms_[i].role)) + " arm sees another model in " + job.model +
                                                      " than the others (layers, vocabulary, threads or sizes differ)");
        }
        info_ = info;
    }
}

plugin::Engine& LoadedArms::engine(ArmRole role) {
    for (Loaded& arm : arms_) {
        if (arm.role == role) return *arm.engine;
    }
    throw Error(ExitCode::invalid, "no " + std::string(name_of(role)) + " arm in this job");
}

plugin::EngineLibrary& LoadedArms::library(ArmRole role) {
    for (Loaded& arm : arms_) {
        if (arm.role == role) return *arm.library;
    }
    throw Error(ExitCode::invalid, "no " + std::string(name_of(role)) + " arm in this job");
}

}  // namespace kestrel::session
