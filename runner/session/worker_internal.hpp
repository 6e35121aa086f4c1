// Shared by the worker's jobs; not for the supervisor.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runner/platform/host.hpp"
#include "runner/platform/process.hpp"
#include "runner/plugin/engine_client.hpp"
#include "runner/session/job.hpp"
#include "runner/session/weight_cache.hpp"

namespace kestrel::session {

// Tokens that an inspection decodes; an engine is opened for at least so many positions.
inline constexpr std::size_t inspected_tokens = 5;

// The supervisor's end of the conversation. Losing it ends the worker: nobody is left to measure for.
class Reporter {
  public:
    explicit Reporter(platform::LineChannel& channel) : channel_(&channel) {}
    void send(const nlohmann::json& message);
    // Says what is about to happen, so that a crash has a place.
    void phase(const std::string& what, std::optional<ArmRole> arm = std::nullopt);
    // For the session's log: where weights came from, and why the cache was of no use.
    void note_weights(const std::string& text);
    void note_no_cache(const std::string& text);
    void wait_for_go();

  private:
    platform::LineChannel* channel_;
};

// The arms of a job, loaded in its order and opened on the same lent memory where the engines allow it.
class LoadedArms {
  public:
    // `compare_weights`: every arm loads the model itself and all must get the same canonical digest, unless memos of earlier inspections
    // of the very same artifacts and files already say so.
    LoadedArms(const Job& job, Reporter& reporter, bool compare_weights);
    LoadedArms(const LoadedArms&) = delete;
    LoadedArms& operator=(const LoadedArms&) = delete;
    ~LoadedArms();  // engines, then the memory lent to them, then the libraries

    [[nodiscard]] plugin::Engine& engine(ArmRole role);
    [[nodiscard]] plugin::EngineLibrary& library(ArmRole role);
    [[nodiscard]] bool borrowed() const { return borrowed_; }
    [[nodiscard]] const std::string& weights_digest() const { return weights_digest_; }
    [[nodiscard]] const std::string& layout_id() const { return layout_id_; }
    // Hash of the weights block, if the cache holds it for replicates to come; else empty.
    [[nodiscard]] const std::string& weights_block() const { return weights_block_; }
    [[nodiscard]] plugin::ModelInfo info() const { return info_; }

  private:
    void load_libraries(const Job& job, Reporter& reporter);
    void lend_memory(const Job& job, Reporter& reporter, bool compare_weights);
    void open(const Job& job, Reporter& reporter);
    // Of weights, in loaded_weights.cpp.
    void inspect_weights(const Job& job, Reporter& reporter, bool device);
    bool use_memos(const Job& job, Reporter& reporter, const WeightCache& cache, const WeightBlock& block, const ModelFiles& files);
    void compare_loads(const Job& job, Reporter& reporter, bool device, const std::function<void(std::size_t arm)>& on_loaded);
    void keep_weights(const Job& job, Reporter& reporter, const WeightCache& cache, const WeightBlock& block, const ModelFiles& files);
    void fetch_weights(const Job& job, Reporter& reporter, bool device);
    void fill_weights(const Job& job, bool device) const;
    [[nodiscard]] const plugin::EngineLibrary* copier() const;
    [[nodiscard]] WeightBlock weight_block(bool device) const;
    [[nodiscard]] WeightKey weight_key(const std::string& digest) const { return {digest, layout_id_, lent_.weights.size()}; }
    [[nodiscard]] MemoKey memo_key(const Job& job, std::size_t arm, const ModelFiles& files) const;
    [[nodiscard]] static plugin::OpenRequest request_for(const Job& job, const JobArm& arm);

    struct Loaded {
        ArmRole role = ArmRole::base;
        std::unique_ptr<plugin::EngineLibrary> library;
        std::unique_ptr<plugin::Engine> engine;
    };
    [[nodiscard]] std::span<std::byte> lend(const plugin::MemoryNeeds& needs, std::size_t bytes, std::size_t offset);

    std::vector<Loaded> arms_;
    std::vector<std::unique_ptr<platform::HostMemory>> host_memory_;
    std::vector<std::unique_ptr<plugin::DeviceMemory>> device_memory_;
    plugin::LentMemory lent_;
    bool borrowed_ = false;
    std::string weights_digest_;
    std::string layout_id_;
    std::string weights_block_;
    plugin::ModelInfo info_;
};

// Tokens that two engines chose after the same sequence. Logits that may each be off by a tolerance can swap two that are closer than twice
// that: such a different choice is excused, any other is wrong.
struct ChoiceCount {
    std::size_t equal = 0;
    std::size_t excused = 0;
    std::size_t wrong = 0;
    std::size_t skipped = 0;  // not compared: the sequences had parted
    // `margin`: how much one engine prefers its own choice to the other's, in logits; `tolerance` likewise.
    void add(bool same, double margin, double tolerance);
};
[[nodiscard]] double largest_magnitude(const std::vector<float>& values);

void run_context(const Job& job, Reporter& reporter);
void run_check(const Job& job, Reporter& reporter);
void run_check_reference(const Job& job, Reporter& reporter);
void run_check_operators(const Job& job, Reporter& reporter);
void run_stopwatch(const Job& job, Reporter& reporter);

}  // namespace kestrel::session
