// How the lent weights get their content: by the engine's own load, or from the cache.
//
// A replicate may take a block from the cache because this session's inspection saw one artifact's own load write the very same bytes (by
// their hash), for every artifact; and an inspection may take it because a memo says so of the very same artifact and files. A layout id
// that an engine's author forgot to change is therefore harmless here.
#include <algorithm>
#include <chrono>
#include <vector>

#include "runner/platform/host.hpp"
#include "runner/record/error.hpp"
#include "runner/record/names.hpp"
#include "runner/session/parallel.hpp"
#include "runner/session/worker_internal.hpp"

namespace kestrel::session {
namespace {

using Clock = std::chrono::steady_clock;

// More threads than this gain nothing: memory or the disk is the limit.
constexpr int most_threads = 16;
constexpr std::chrono::seconds sign_of_life{10};

int threads_of(const Job& job) {
    return std::clamp(job.threads > 0 ? job.threads : platform::usable_cpus(), 1, most_threads);
}

// Not zero: weights that an arm left unwritten must not pass for its own, and f32 values of these bytes are not numbers.
constexpr std::byte unwritten{0xff};

WeightCache cache_of(const Job& job, Reporter& reporter, const std::string& what) {
    auto last = std::make_shared<Clock::time_point>(Clock::now());
    return WeightCache(job.cache, {threads_of(job), [last, what, &reporter] {
                                       if (Clock::now() - *last < sign_of_life) return;
                                       *last = Clock::now();
                                       reporter.phase(what);
                                   }});
}

std::string seconds_since(Clock::time_point start) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
    return std::to_string(ms / 1000) + "." + std::to_string(ms / 100 % 10) + " s";
}

// Arms whose artifact an earlier arm has need not load: they would do the same.
bool loads(const Job& job, std::size_t arm) {
    return std::none_of(job.arms.begin(), job.arms.begin() + static_cast<std::ptrdiff_t>(arm),
                        [&](const JobArm& earlier) { return earlier.artifact == job.arms[arm].artifact; });
}

}  // namespace

// A library that can copy the arms' memory; null: none can. Old builds cannot, and any one serves all, as they share the memory.
const plugin::EngineLibrary* LoadedArms::copier() const {
    const auto found = std::find_if(arms_.begin(), arms_.end(), [](const Loaded& arm) { return arm.library->copies_device_memory(); });
    return found == arms_.end() ? nullptr : found->library.get();
}

WeightBlock LoadedArms::weight_block(bool device) const {
    WeightBlock block;
    block.bytes = lent_.weights.size();
    if (!device) {
        block.host = lent_.weights.data();
        return block;
    }
    const plugin::EngineLibrary* library = copier();
    const std::span<std::byte> weights = lent_.weights;
    block.put = [=](std::uint64_t offset, std::span<const std::byte> from) {
        library->copy_in(weights.subspan(offset, from.size()), from);
    };
    block.get = [=](std::uint64_t offset, std::span<std::byte> to) { library->copy_out(weights.subspan(offset, to.size()), to); };
    block.staging = [=](std::size_t bytes) { return library->allocate_staging(bytes); };
    return block;
}

MemoKey LoadedArms::memo_key(const Job& job, std::size_t arm, const ModelFiles& files) const {
    return {job.arms[arm].artifact, job.arms[arm].switches, job.model, platform::host_name(), arms_[arm].library->device(), files};
}

void LoadedArms::fill_weights(const Job& job, bool device) const {
    if (device) return arms_[0].library->fill_device(lent_.weights, unwritten);
    constexpr std::size_t piece = std::size_t{8} << 20;
    const std::size_t bytes = lent_.weights.size();
    for_each_parallel((bytes + piece - 1) / piece, threads_of(job), [&](std::size_t item, std::size_t) {
        const auto part = lent_.weights.subspan(item * piece, std::min(piece, bytes - item * piece));
        std::fill(part.begin(), part.end(), unwritten);
    });
}

// Every replicate's arms share one block; that all of them would load the same is checked once, here, for each artifact.
void LoadedArms::inspect_weights(const Job& job, Reporter& reporter, bool device) {
    const WeightCache cache = cache_of(job, reporter, "weight cache");
    const WeightBlock block = weight_block(device);
    bool keep = cache.serves(block.bytes);
    if (keep && device && copier() == nullptr) {
        keep = false;
        reporter.note_no_cache("not used, because these engines cannot copy device memory; they were built before that was asked for");
    }
    if (!keep) return compare_loads(job, reporter, device, [](std::size_t) {});

    const ModelFiles files = look_at_model(job.model);
    if (!job.cache.verify && use_memos(job, reporter, cache, block, files)) return;
    std::string other;
    fill_weights(job, device);
    compare_loads(job, reporter, device, [&](std::size_t arm) {
        reporter.phase("hash of the weights block", arms_[arm].role);
        const std::string hash = cache.hash(block);
        if (weights_block_.empty()) weights_block_ = hash;
        if (hash != weights_block_) other = name_of(arms_[arm].role);
    });
    if (!other.empty()) {
        weights_block_.clear();
        reporter.note_no_cache("not used, because the " + other + " arm arranges the same weights in other bytes than the " +
                               std::string(name_of(arms_[0].role)) + " arm under the same layout id " + layout_id_);
        return;
    }
    keep_weights(job, reporter, cache, block, files);
}

// Takes the block from the cache if earlier inspections of every artifact loaded it from the files as they are now.
bool LoadedArms::use_memos(const Job& job, Reporter& reporter, const WeightCache& cache, const WeightBlock& block,
                           const ModelFiles& files) {
    std::optional<InspectionMemo> first;
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        if (!loads(job, i)) continue;
        const auto memo = cache.find(memo_key(job, i, files));
        if (!memo || (first && *memo != *first)) return false;
        first = memo;
    }
    if (!first || first->layout_id != layout_id_ || first->bytes != block.bytes) return false;
    reporter.phase("weights from the cache");
    const auto start = Clock::now();
    if (const auto problem = cache.read(weight_key(first->digest), first->block_hash, block)) {
        reporter.note_no_cache(*problem + "; the engines load the model themselves");
        return false;
    }
    weights_digest_ = first->digest;
    weights_block_ = first->block_hash;
    reporter.note_weights("weights of the inspection: from the cache in " + seconds_since(start) +
                          "; artifacts, switches and the model's files are those of an earlier inspection");
    return true;
}

// Each artifact loads for itself and all must get the same digest; the last one's block stays.
void LoadedArms::compare_loads(const Job& job, Reporter& reporter, bool device, const std::function<void(std::size_t arm)>& on_loaded) {
    for (std::size_t i = 0; i < arms_.size(); ++i) {
        if (!loads(job, i)) continue;
        const plugin::OpenRequest request = request_for(job, job.arms[i]);
        reporter.phase("load model", arms_[i].role);
        // Whatever an earlier arm wrote must not pass for this arm's own loading.
        if (i > 0) fill_weights(job, device);
        arms_[i].library->load_weights(request, lent_);
        reporter.phase("digest of the weights", arms_[i].role);
        const std::string digest = arms_[i].library->weights_digest(request, lent_);
        if (i > 0 && digest != weights_digest_) {
            throw Error(ExitCode::not_comparable, "the " + std::string(name_of(arms_[i].role)) + " and " +
                                                      std::string(name_of(arms_[0].role)) + " arms load different weights from " +
                                                      job.model + " (digests " + digest + " and " + weights_digest_ +
                                                      "); compare engines that read the model alike");
        }
        weights_digest_ = digest;
        on_loaded(i);
    }
}

void LoadedArms::keep_weights(const Job& job, Reporter& reporter, const WeightCache& cache, const WeightBlock& block,
                              const ModelFiles& files) {
    reporter.phase("weights into the cache");
    const auto start = Clock::now();
    const WeightKey key = weight_key(weights_digest_);
    const bool held = cache.holds(key, weights_block_);
    if (const auto problem = held ? std::nullopt : cache.store(key, weights_block_, block)) {
        weights_block_.clear();
        reporter.note_no_cache("the block is not kept: " + *problem);
        return;
    }
    if (!held) reporter.note_weights("weights kept in the cache in " + seconds_since(start));
    std::string problem = files.problem;
    if (problem.empty() && look_at_model(job.model) != files) problem = job.model + " changed while it was loaded";
    for (std::size_t i = 0; i < arms_.size() && problem.empty(); ++i) {
        if (!loads(job, i)) continue;
        const InspectionMemo memo{weights_digest_, layout_id_, block.bytes, weights_block_};
        problem = cache.store(memo_key(job, i, files), memo).value_or("");
    }
    if (!problem.empty()) reporter.note_weights("this inspection is not remembered: " + problem);
}

// The weights of a planned job: the block that was inspected, or what the first arm loads.
void LoadedArms::fetch_weights(const Job& job, Reporter& reporter, bool device) {
    const WeightCache cache = cache_of(job, reporter, "weight cache");
    const WeightBlock block = weight_block(device);
    const WeightKey key = weight_key(job.weights_digest);
    const bool kept =
        !job.weights_digest.empty() && !job.weights_block.empty() && cache.serves(block.bytes) && (!device || copier() != nullptr);
    if (kept) {
        reporter.phase("weights from the cache");
        const auto start = Clock::now();
        const auto problem = cache.read(key, job.weights_block, block);
        if (!problem) {
            const std::string whose = job.kind == JobKind::context ? "the context" : "replicate " + std::to_string(job.replicate);
            return reporter.note_weights("weights of " + whose + ": from the cache in " + seconds_since(start));
        }
        reporter.note_no_cache(*problem + "; the engine loads the model itself");
        fill_weights(job, device);
    }
    reporter.phase("load model", arms_[0].role);
    arms_[0].library->load_weights(request_for(job, job.arms[0]), lent_);
    if (!kept) return;
    reporter.phase("weights into the cache");
    if (const auto problem = cache.store(key, job.weights_block, block, true)) reporter.note_no_cache("the block is not kept: " + *problem);
}

}  // namespace kestrel::session
