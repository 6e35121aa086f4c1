// libkestrel_planted.so: the CPU engine with a known slowdown, for tests of the service itself. The switch KESTREL_PLANTED_WASTE sets how
// many units of useless work follow each token; a unit is a fixed chain of dependent multiplications, a fraction of a microsecond. What
// that is as a share of a token depends on model and machine, and is found out with a stopwatch (runner/session/worker_stopwatch.cpp).
// No switch of a released engine wastes anything.
#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/backend.hpp"

namespace kestrel {
namespace {

constexpr int steps_per_unit = 64;
// 0 to 8 and then four values for each doubling, so that any share is met to an eighth.
constexpr int most_units = 1 << 16;

std::vector<std::uint64_t> unit_counts() {
    std::vector<std::uint64_t> counts{0, 1, 2, 3, 4, 5, 6, 7};
    for (std::uint64_t octave = 8; octave <= most_units; octave *= 2) {
        for (std::uint64_t quarter = 0; quarter < 4; ++quarter) counts.push_back(octave + quarter * octave / 4);
    }
    return counts;
}

// The switch's values, as text that outlives every description of it.
struct WasteSwitch {
    WasteSwitch() : counts(unit_counts()) {
        texts.reserve(counts.size());
        for (const std::uint64_t count : counts) texts.push_back(std::to_string(count));
        for (const std::string& text : texts) values.push_back(text.c_str());
    }
    std::vector<std::uint64_t> counts;
    std::vector<std::string> texts;
    std::vector<const char*> values;
};

const WasteSwitch& waste_switch() {
    static const WasteSwitch one;
    return one;
}

// Each step needs the one before, so neither compiler nor processor can shorten it.
std::uint64_t waste(std::uint64_t units, std::uint64_t seed) {
    for (std::uint64_t unit = 0; unit < units; ++unit) {
        for (int step = 0; step < steps_per_unit; ++step) {
            seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
            asm volatile("" : "+r"(seed));
        }
    }
    return seed;
}

class PlantedBackend final : public Backend {
  public:
    explicit PlantedBackend(const Opening& opening) : waste_index_(opening.switches.back()) {
        Opening inner = opening;
        inner.switches.pop_back();
        inner_ = cpu::library().open(inner);
    }
    void reset() override { inner_->reset(); }
    std::int32_t decode(std::int32_t token) override {
        const std::int32_t next = inner_->decode(token);
        wasted_ = waste(waste_switch().counts[waste_index_], wasted_);
        return next;
    }
    void read_logits(std::span<float> out) const override { inner_->read_logits(out); }
    void read_hidden(std::span<float> out) const override { inner_->read_hidden(out); }
    void read_final_norm(std::span<float> out) const override { inner_->read_final_norm(out); }
    void read_gdn_state(std::uint32_t layer, std::span<float> out) const override { inner_->read_gdn_state(layer, out); }
    [[nodiscard]] std::size_t saved_bytes() const override { return inner_->saved_bytes(); }
    void save(std::span<std::byte> out) const override { inner_->save(out); }
    void restore(std::span<const std::byte> in) override { inner_->restore(in); }
    [[nodiscard]] const char* effective_switch(std::size_t index) const override {
        const bool own = index == cpu::library().switches.size();
        return own ? waste_switch().values[waste_index_] : inner_->effective_switch(index);
    }

  private:
    std::unique_ptr<Backend> inner_;
    std::size_t waste_index_;
    std::uint64_t wasted_ = 1;
};

}  // namespace

const BackendLibrary& backend_library() {
    static const std::vector<SwitchDescription> switches = [] {
        std::vector<SwitchDescription> all(cpu::library().switches.begin(), cpu::library().switches.end());
        all.push_back({"KESTREL_PLANTED_WASTE", waste_switch().values, "units of useless work after each token"});
        return all;
    }();
    static const BackendLibrary library = [] {
        BackendLibrary one = cpu::library();
        one.name = "kestrel_planted";
        one.switches = switches;
        one.open = [](const Opening& opening) -> std::unique_ptr<Backend> { return std::make_unique<PlantedBackend>(opening); };
        return one;
    }();
    return library;
}

}  // namespace kestrel
