#include "engine/engine.hpp"

#include <algorithm>
#include <vector>

#include "engine/cpu/thread_pool.hpp"
#include "engine/error.hpp"
#include "engine/switches.hpp"

namespace kestrel {
namespace {

constexpr std::uint32_t most_threads = 1024;

std::uint64_t weights_bytes(const WeightLayout& layout) {
    const WeightArrangement* own = backend_library().arrangement;
    return own != nullptr ? own->bytes(layout) : layout.bytes();
}

std::string layout_id(const WeightLayout& layout) {
    const WeightArrangement* own = backend_library().arrangement;
    return own != nullptr ? own->id(layout) : layout.id();
}

MemoryBlock lent(void* memory, std::size_t bytes, std::uint64_t needed, const std::string& purpose) {
    return MemoryBlock::lend(memory, bytes, needed, backend_library().alignment, purpose);
}

MemoryBlock host_block(const WeightLayout& layout, const ModelSource& source) {
    return MemoryBlock::allocate(layout.bytes(), "weights of " + source.path.string() + " on their way through host memory");
}

// Into the backend's memory.
void load_weights(const ModelSource& source, const WeightLayout& layout, std::uint32_t threads, std::byte* weights) {
    const WeightArrangement* own = backend_library().arrangement;
    if (own == nullptr || own->arrange != nullptr) {
        source.load(layout, threads, weights);
        if (own != nullptr) own->arrange(layout, threads, weights);
        return;
    }
    const MemoryBlock host = host_block(layout, source);
    source.load(layout, threads, host.data());
    own->put(layout, host.data(), weights);
}

MemoryBlock weights_block(const kestrel_open_args& args, const ModelSource& source, const WeightLayout& layout) {
    const std::uint64_t bytes = weights_bytes(layout);
    if (args.weights != nullptr) return lent(args.weights, args.weights_bytes, bytes, "weights");
    MemoryBlock block = backend_library().allocate(bytes, "weights of " + source.path.string());
    load_weights(source, layout, threads_of(args), block.data());
    return block;
}

MemoryBlock workspace_block(const kestrel_open_args& args, const ModelSource& source) {
    const std::uint64_t bytes = backend_library().workspace_bytes(source.dims, args.max_positions);
    if (args.workspace != nullptr) return lent(args.workspace, args.workspace_bytes, bytes, "workspace");
    return backend_library().allocate(bytes, "state, cache and scratch of " + source.path.string());
}

std::byte* lent_weights(const kestrel_open_args& args, const WeightLayout& layout) {
    if (args.weights == nullptr) bad_argument("no weights memory is lent");
    return lent(args.weights, args.weights_bytes, weights_bytes(layout), "weights").data();
}

SwitchValues switches_of(const kestrel_open_args& args) {
    return read_switches(engine_switches(), args.switches, args.switch_count);
}

WeightLayout layout_for(const ModelSource& source, const SwitchValues& switches) {
    return layout_of(source, static_cast<WeightFormat>(switches.back()));
}

}  // namespace

std::span<const SwitchDescription> engine_switches() {
    static const std::vector<SwitchDescription> all = [] {
        std::vector<SwitchDescription> switches(backend_library().switches.begin(), backend_library().switches.end());
        switches.push_back(weights_switch());
        return switches;
    }();
    return all;
}

std::unique_ptr<ModelSource> find_model(const kestrel_open_args& args) {
    if (args.model == nullptr || args.model[0] == '\0') bad_argument("no model is named");
    if (args.max_positions == 0) bad_argument("max_positions must be at least 1");
    return open_model(args.model);
}

std::uint32_t threads_of(const kestrel_open_args& args) {
    if (args.threads > most_threads) {
        bad_argument(std::to_string(args.threads) + " threads asked for, at most " + std::to_string(most_threads) + " are possible");
    }
    return args.threads != 0 ? args.threads : std::min(cpu::available_processors(), most_threads);
}

kestrel_memory_needs memory_needs(const kestrel_open_args& args) {
    const auto source = find_model(args);
    const WeightLayout layout = layout_for(*source, switches_of(args));
    kestrel_memory_needs needs{};
    needs.kind = backend_library().memory_kind;
    needs.weights_bytes = weights_bytes(layout);
    needs.workspace_bytes = backend_library().workspace_bytes(source->dims, args.max_positions);
    needs.alignment = backend_library().alignment;
    const std::string id = layout_id(layout);
    std::copy_n(id.begin(), std::min(id.size(), sizeof needs.layout_id - 1), needs.layout_id);
    return needs;
}

void load_borrowed(const kestrel_open_args& args) {
    const auto source = find_model(args);
    const WeightLayout layout = layout_for(*source, switches_of(args));
    load_weights(*source, layout, threads_of(args), lent_weights(args, layout));
}

std::string digest_borrowed(const kestrel_open_args& args) {
    const auto source = find_model(args);
    const WeightLayout layout = layout_for(*source, switches_of(args));
    const std::byte* weights = lent_weights(args, layout);
    const WeightArrangement* own = backend_library().arrangement;
    if (own == nullptr) return digest_of(layout, weights, threads_of(args));
    if (own->restore != nullptr) return digest_of(layout, weights, threads_of(args), own->restore);
    const MemoryBlock host = host_block(layout, *source);
    own->get(layout, weights, host.data());
    return digest_of(layout, host.data(), threads_of(args));
}

}  // namespace kestrel

kestrel_engine::kestrel_engine(const kestrel_open_args& args) : kestrel_engine(args, *kestrel::find_model(args)) {}

kestrel_engine::kestrel_engine(const kestrel_open_args& args, const kestrel::ModelSource& source)
    : dims_(source.dims),
      switches_(kestrel::switches_of(args)),
      layout_(kestrel::layout_for(source, switches_)),
      threads_(kestrel::threads_of(args)),
      max_positions_(args.max_positions) {
    const kestrel::BackendLibrary& library = kestrel::backend_library();
    weights_ = kestrel::weights_block(args, source, layout_);
    workspace_ = kestrel::workspace_block(args, source);
    backend_ = library.open({.dims = dims_,
                             .layout = layout_,
                             .weights = weights_.data(),
                             .workspace = workspace_.data(),
                             .threads = threads_,
                             .max_positions = max_positions_,
                             .switches = {switches_.begin(), switches_.end() - 1}});
}

const char* kestrel_engine::effective_switch(std::size_t index) const {
    const bool own = index + 1 < switches_.size();
    return own ? backend_->effective_switch(index) : kestrel::weights_switch().values[switches_.back()];
}

kestrel_model_info kestrel_engine::info() const {
    kestrel_model_info info{};
    info.layers = dims_.layers();
    info.gdn_layers = dims_.gdn_layers();
    info.attention_layers = dims_.attention_layers();
    info.vocab = dims_.vocab;
    info.hidden = dims_.hidden;
    info.max_positions = max_positions_;
    info.threads = threads_;
    info.parameters = layout_.parameters();
    info.state_bytes = std::uint64_t{dims_.gdn_layers()} * dims_.state_elements() * kestrel::backend_library().state_element_bytes;
    return info;
}
