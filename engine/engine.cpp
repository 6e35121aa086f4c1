#include "engine/engine.hpp"

#include <algorithm>
#include <cstring>

#include "engine/error.hpp"
#include "engine/switches.hpp"

namespace kestrel {
namespace {

constexpr std::uint32_t most_threads = 1024;

MemoryBlock weights_block(const kestrel_open_args& args, const ModelSource& source, const WeightLayout& layout) {
    if (args.weights != nullptr) return MemoryBlock::lend(args.weights, args.weights_bytes, layout.bytes(), "weights");
    MemoryBlock block = MemoryBlock::allocate(layout.bytes(), "weights of " + source.path.string());
    source.load(layout, threads_of(args), block.data());
    return block;
}

MemoryBlock workspace_block(const kestrel_open_args& args, const ModelSource& source) {
    const std::uint64_t bytes = cpu::WorkspaceLayout(source.dims, args.max_positions).bytes;
    if (args.workspace != nullptr) return MemoryBlock::lend(args.workspace, args.workspace_bytes, bytes, "workspace");
    return MemoryBlock::allocate(bytes, "state, cache and scratch of " + source.path.string());
}

SwitchValues switches_of(const kestrel_open_args& args) {
    return read_switches(args.switches, args.switch_count);
}

cpu::DecoderOptions options_of(const kestrel_open_args& args) {
    return {.threads = threads_of(args), .max_positions = args.max_positions, .gdn = switches_of(args).gdn()};
}

WeightLayout layout_for(const kestrel_open_args& args, const ModelSource& source) {
    return layout_of(source, switches_of(args).weights());
}

std::byte* lent_weights(const kestrel_open_args& args, const WeightLayout& layout) {
    if (args.weights == nullptr) bad_argument("no weights memory is lent");
    return MemoryBlock::lend(args.weights, args.weights_bytes, layout.bytes(), "weights").data();
}

}  // namespace

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
    const WeightLayout layout = layout_for(args, *source);
    kestrel_memory_needs needs{};
    needs.kind = KESTREL_MEMORY_HOST;
    needs.weights_bytes = layout.bytes();
    needs.workspace_bytes = cpu::WorkspaceLayout(source->dims, args.max_positions).bytes;
    needs.alignment = memory_alignment;
    const std::string id = layout.id();
    std::copy_n(id.begin(), std::min(id.size(), sizeof needs.layout_id - 1), needs.layout_id);
    return needs;
}

void load_borrowed(const kestrel_open_args& args) {
    const auto source = find_model(args);
    const WeightLayout layout = layout_for(args, *source);
    source->load(layout, threads_of(args), lent_weights(args, layout));
}

std::string digest_borrowed(const kestrel_open_args& args) {
    const WeightLayout layout = layout_for(args, *find_model(args));
    return digest_of(layout, lent_weights(args, layout));
}

}  // namespace kestrel

kestrel_engine::kestrel_engine(const kestrel_open_args& args) : kestrel_engine(args, *kestrel::find_model(args)) {}

kestrel_engine::kestrel_engine(const kestrel_open_args& args, const kestrel::ModelSource& source)
    : switches(kestrel::switches_of(args)),
      layout_(kestrel::layout_of(source, switches.weights())),
      weights_(kestrel::weights_block(args, source, layout_)),
      workspace_(kestrel::workspace_block(args, source)),
      decoder(source.dims, layout_, weights_.data(), reinterpret_cast<float*>(workspace_.data()), kestrel::options_of(args)) {}

kestrel_model_info kestrel_engine::info() const {
    const kestrel::ModelDims& dims = decoder.dims();
    kestrel_model_info info{};
    info.layers = dims.layers();
    info.gdn_layers = dims.gdn_layers();
    info.attention_layers = dims.attention_layers();
    info.vocab = dims.vocab;
    info.hidden = dims.hidden;
    info.max_positions = decoder.options().max_positions;
    info.threads = decoder.options().threads;
    info.parameters = layout_.parameters();
    info.state_bytes = std::uint64_t{dims.gdn_layers()} * dims.state_elements() * sizeof(float);
    return info;
}
