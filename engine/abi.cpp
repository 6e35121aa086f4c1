// The C boundary: checks pointers and sizes, turns exceptions into a status and the thread's error text.
#include "engine/abi.h"

#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string_view>

#include "engine/boundary.hpp"
#include "engine/engine.hpp"
#include "engine/error.hpp"
#include "engine/operators.hpp"

// The build's manifest: an assembler file that the build writes puts it between these.
extern "C" __attribute__((visibility("hidden"))) const char kestrel_manifest_begin[];
extern "C" __attribute__((visibility("hidden"))) const char kestrel_manifest_end[];

namespace kestrel {
namespace {

// Plain memory: a destructor per thread would tie threads to this library, and reporting lack of memory must need none.
thread_local char last_error_text[2048];

void remember(std::string_view text) noexcept {
    const std::size_t bytes = std::min(text.size(), sizeof last_error_text - 1);
    std::memcpy(last_error_text, text.data(), bytes);
    last_error_text[bytes] = '\0';
}

void need(const void* pointer, const char* what) {
    if (pointer == nullptr) bad_argument(std::string(what) + " is null");
}

// A caller built against a later header may have a larger struct; a smaller one lacks fields that are read or written.
template <class Struct>
void need_struct(const Struct* value, const char* what) {
    need(value, what);
    if (value->struct_size < sizeof(Struct)) {
        bad_argument(std::string(what) + ": struct_size is " + std::to_string(value->struct_size) + ", expected at least " +
                     std::to_string(sizeof(Struct)));
    }
}

void need_args(const kestrel_open_args* args) {
    need_struct(args, "args");
    if (args->reserved != 0) bad_argument("args: reserved must be 0");
}

// Fills a caller's struct, keeping the size that the caller stated.
template <class Struct>
void give(Struct* out, Struct value) {
    value.struct_size = out->struct_size;
    *out = value;
}

void need_count(std::size_t found, std::size_t expected, const char* what) {
    if (found != expected) {
        bad_argument(std::string(what) + ": room for " + std::to_string(found) + " given, " + std::to_string(expected) + " expected");
    }
}

const char* manifest(size_t* bytes) {
    if (bytes != nullptr) *bytes = static_cast<std::size_t>(kestrel_manifest_end - kestrel_manifest_begin);
    return kestrel_manifest_begin;
}

const char* last_error() {
    return last_error_text;
}

kestrel_status open(const kestrel_open_args* args, kestrel_engine** out) {
    return guarded([&] {
        need(out, "out");
        *out = nullptr;
        need_args(args);
        *out = new kestrel_engine(*args);
    });
}

void close(kestrel_engine* engine) {
    delete engine;
}

kestrel_status info(const kestrel_engine* engine, kestrel_model_info* out) {
    return guarded([&] {
        need(engine, "engine");
        need_struct(out, "out");
        give(out, engine->info());
    });
}

kestrel_status reset(kestrel_engine* engine) {
    return guarded([&] {
        need(engine, "engine");
        engine->backend().reset();
    });
}

kestrel_status decode(kestrel_engine* engine, int32_t token, int32_t* next) {
    return guarded([&] {
        need(engine, "engine");
        need(next, "next");
        *next = engine->backend().decode(token);
    });
}

kestrel_status logits(kestrel_engine* engine, float* out, size_t count) {
    return guarded([&] {
        need(engine, "engine");
        need(out, "out");
        need_count(count, engine->dims().vocab, "logits");
        engine->backend().read_logits({out, count});
    });
}

// borrow.v1

kestrel_status borrow_needs(const kestrel_open_args* args, kestrel_memory_needs* out) {
    return guarded([&] {
        need_args(args);
        need_struct(out, "out");
        give(out, memory_needs(*args));
    });
}

kestrel_status borrow_load(const kestrel_open_args* args) {
    return guarded([&] {
        need_args(args);
        load_borrowed(*args);
    });
}

kestrel_status borrow_digest(const kestrel_open_args* args, char out[65]) {
    return guarded([&] {
        need_args(args);
        need(out, "out");
        const std::string digest = digest_borrowed(*args);
        std::memcpy(out, digest.c_str(), digest.size() + 1);
    });
}

// state.v1

kestrel_status state_size(const kestrel_engine* engine, size_t* bytes) {
    return guarded([&] {
        need(engine, "engine");
        need(bytes, "bytes");
        *bytes = engine->backend().saved_bytes();
    });
}

kestrel_status state_save(kestrel_engine* engine, void* out, size_t bytes) {
    return guarded([&] {
        need(engine, "engine");
        need(out, "out");
        need_count(bytes, engine->backend().saved_bytes(), "saved state, bytes");
        engine->backend().save({static_cast<std::byte*>(out), bytes});
    });
}

kestrel_status state_restore(kestrel_engine* engine, const void* in, size_t bytes) {
    return guarded([&] {
        need(engine, "engine");
        need(in, "in");
        need_count(bytes, engine->backend().saved_bytes(), "saved state, bytes");
        engine->backend().restore({static_cast<const std::byte*>(in), bytes});
    });
}

std::size_t readout_count(const ModelDims& dims, kestrel_readout what, std::uint32_t layer) {
    switch (what) {
        case KESTREL_READ_HIDDEN:
        case KESTREL_READ_FINAL_NORM:
            return dims.hidden;
        case KESTREL_READ_GDN_STATE:
            if (layer >= dims.layers()) {
                bad_argument("layer " + std::to_string(layer) + " of a model of " + std::to_string(dims.layers()));
            }
            if (dims.full_attention[layer]) {
                fail(KESTREL_UNSUPPORTED, "layer " + std::to_string(layer) + " attends fully and has no recurrent state");
            }
            return dims.state_elements();
    }
    fail(KESTREL_UNSUPPORTED, "no readout " + std::to_string(static_cast<int>(what)));
}

kestrel_status state_read_size(const kestrel_engine* engine, kestrel_readout what, uint32_t layer, size_t* count) {
    return guarded([&] {
        need(engine, "engine");
        need(count, "count");
        *count = readout_count(engine->dims(), what, layer);
    });
}

kestrel_status state_read(kestrel_engine* engine, kestrel_readout what, uint32_t layer, float* out, size_t count) {
    return guarded([&] {
        need(engine, "engine");
        need(out, "out");
        need_count(count, readout_count(engine->dims(), what, layer), "readout");
        const std::span<float> values(out, count);
        if (what == KESTREL_READ_HIDDEN) return engine->backend().read_hidden(values);
        if (what == KESTREL_READ_FINAL_NORM) return engine->backend().read_final_norm(values);
        engine->backend().read_gdn_state(layer, values);
    });
}

// switches.v1

size_t switches_count() {
    return engine_switches().size();
}

kestrel_status switches_describe(size_t index, kestrel_switch_info* out) {
    return guarded([&] {
        need_struct(out, "out");
        const auto all = engine_switches();
        if (index >= all.size()) bad_argument("no switch " + std::to_string(index));
        const SwitchDescription& one = all[index];
        give(out, {0, static_cast<std::uint32_t>(one.values.size()), one.name, one.values.data(), one.description});
    });
}

kestrel_status switches_effective(const kestrel_engine* engine, size_t index, const char** value) {
    return guarded([&] {
        need(engine, "engine");
        need(value, "value");
        if (index >= engine_switches().size()) bad_argument("no switch " + std::to_string(index));
        *value = engine->effective_switch(index);
    });
}

// operator.v1

kestrel_status operator_run(const char* name, const char* variant, const kestrel_tensor* inputs, size_t input_count,
                            kestrel_tensor* outputs, size_t output_count) {
    return guarded([&] {
        need(name, "name");
        need(variant, "variant");
        need(inputs, "inputs");
        need(outputs, "outputs");
        run_operator(*backend_library().operators, name, variant, {inputs, input_count}, {outputs, output_count});
    });
}

constexpr kestrel_borrow borrow_table{sizeof(kestrel_borrow), borrow_needs, borrow_load, borrow_digest};
constexpr kestrel_state state_table{sizeof(kestrel_state), state_size, state_save, state_restore, state_read_size, state_read};
constexpr kestrel_switches switches_table{sizeof(kestrel_switches), switches_count, switches_describe, switches_effective};
constexpr kestrel_operator operator_table{sizeof(kestrel_operator), operator_run};

const void* capability(const char* name) {
    if (name == nullptr) return nullptr;
    const std::string_view wanted = name;
    if (wanted == KESTREL_CAP_BORROW) return &borrow_table;
    if (wanted == KESTREL_CAP_STATE) return &state_table;
    if (wanted == KESTREL_CAP_SWITCHES) return &switches_table;
    if (wanted == KESTREL_CAP_OPERATOR) return &operator_table;
    const auto more = backend_library().capability;
    return more != nullptr ? more(wanted) : nullptr;
}

const kestrel_engine_api& table() {
    static const kestrel_engine_api api{
        .struct_size = sizeof(kestrel_engine_api),
        .abi_version = KESTREL_ABI_VERSION,
        .engine_name = backend_library().name,
        .manifest = manifest,
        .last_error = last_error,
        .open = open,
        .close = close,
        .info = info,
        .reset = reset,
        .decode = decode,
        .logits = logits,
        .capability = capability,
    };
    return api;
}

}  // namespace

kestrel_status run_at_boundary(void (*body)(const void* context), const void* context) noexcept {
    last_error_text[0] = '\0';
    try {
        body(context);
        return KESTREL_OK;
    } catch (const EngineError& error) {
        remember(error.what());
        return error.status();
    } catch (const std::bad_alloc&) {
        remember("out of host memory");
        return KESTREL_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        remember(error.what());
        return KESTREL_INTERNAL;
    } catch (...) {
        remember("unknown exception in the engine");
        return KESTREL_INTERNAL;
    }
}

}  // namespace kestrel

extern "C" __attribute__((visibility("default"))) const kestrel_engine_api* kestrel_engine_entry(uint32_t caller_abi_version);

const kestrel_engine_api* kestrel_engine_entry(uint32_t caller_abi_version) {
    return caller_abi_version == KESTREL_ABI_VERSION ? &kestrel::table() : nullptr;
}
