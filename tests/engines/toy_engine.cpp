// A small engine for tests of the service: what it computes is a hash of the tokens so far, how long it takes is a fixed amount of integer
// work, and each misbehaviour is one define, so that a build with one is a candidate that differs in exactly one place.
//   TOY_EXTRA_PERCENT=p   p % more work per token
//   TOY_CRASH_AFTER=n     invalid memory access in the n-th decode
//   TOY_HANG_AFTER=n      never returns from the n-th decode
//   TOY_WRONG_LOGIT=1     one logit differs
//   TOY_NOT_FINITE=1      one logit is not a number
//   TOY_OTHER_STATE=1     a saved state differs where no output follows from it
//   TOY_NO_STATE=1        states cannot be saved
//   TOY_UNUSED=1          changes nothing
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "engine/abi.h"

extern "C" {
extern const char kestrel_manifest_begin[];
extern const char kestrel_manifest_end[];
}

#ifndef TOY_EXTRA_PERCENT
#define TOY_EXTRA_PERCENT 0
#endif
#ifndef TOY_CRASH_AFTER
#define TOY_CRASH_AFTER 0
#endif
#ifndef TOY_HANG_AFTER
#define TOY_HANG_AFTER 0
#endif
#ifndef TOY_WRONG_LOGIT
#define TOY_WRONG_LOGIT 0
#endif
#ifndef TOY_NOT_FINITE
#define TOY_NOT_FINITE 0
#endif
#ifndef TOY_OTHER_STATE
#define TOY_OTHER_STATE 0
#endif
#ifndef TOY_NO_STATE
#define TOY_NO_STATE 0
#endif

struct kestrel_engine {
    std::uint64_t history = 0;
    std::uint64_t decodes = 0;
};

namespace toy {

constexpr std::uint32_t vocab = 64;
constexpr std::uint64_t work_per_token = 100000;  // steps of the generator below; about 0.1 ms

std::uint64_t mix(std::uint64_t x) {  // the finaliser of splitmix64 (Steele, Lea and Flood, 2014)
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

float logit(const kestrel_engine& engine, std::uint32_t index) {
    if (TOY_NOT_FINITE != 0 && index == 7) return std::numeric_limits<float>::quiet_NaN();
    if (TOY_WRONG_LOGIT != 0 && index == 7) return -1.0F;
    return static_cast<float>(mix(engine.history + index) >> 40);
}

const char* manifest(std::size_t* bytes) {
    *bytes = static_cast<std::size_t>(kestrel_manifest_end - kestrel_manifest_begin);
    return kestrel_manifest_begin;
}

const char* last_error() {
    return "wrong argument";
}

kestrel_status open(const kestrel_open_args* args, kestrel_engine** out) {
    if (args == nullptr || out == nullptr) return KESTREL_BAD_ARGUMENT;
    if (args->switch_count != 0) return KESTREL_BAD_SWITCH;
    *out = new (std::nothrow) kestrel_engine;
    return *out == nullptr ? KESTREL_OUT_OF_MEMORY : KESTREL_OK;
}

void close(kestrel_engine* engine) {
    delete engine;
}

kestrel_status info(const kestrel_engine*, kestrel_model_info* out) {
    out->layers = out->gdn_layers = 1;
    out->attention_layers = 0;
    out->vocab = vocab;
    out->hidden = 1;
    out->threads = 1;
    out->parameters = out->state_bytes = 0;
    return KESTREL_OK;
}

kestrel_status reset(kestrel_engine* engine) {
    engine->history = 0;
    return KESTREL_OK;
}

kestrel_status decode(kestrel_engine* engine, std::int32_t token, std::int32_t* next) {
    ++engine->decodes;
    if (TOY_CRASH_AFTER != 0 && engine->decodes == TOY_CRASH_AFTER) *reinterpret_cast<volatile int*>(engine->history & 8) = 1;
    if (TOY_HANG_AFTER != 0 && engine->decodes == TOY_HANG_AFTER) {
        for (volatile bool forever = true; forever;) {
        }
    }
    volatile std::uint64_t sink = 0;
    for (std::uint64_t i = 0; i < work_per_token + work_per_token * TOY_EXTRA_PERCENT / 100; ++i) sink = mix(sink);
    engine->history = mix(engine->history ^ static_cast<std::uint64_t>(token));
    std::uint32_t best = 0;
    for (std::uint32_t i = 1; i < vocab; ++i) {
        if (logit(*engine, i) > logit(*engine, best)) best = i;
    }
    *next = static_cast<std::int32_t>(best);
    return KESTREL_OK;
}

kestrel_status logits(kestrel_engine* engine, float* out, std::size_t count) {
    if (count != vocab) return KESTREL_BAD_ARGUMENT;
    for (std::uint32_t i = 0; i < vocab; ++i) out[i] = logit(*engine, i);
    return KESTREL_OK;
}

struct SavedState {
    std::uint64_t history;
    std::uint64_t idle;
};

kestrel_status state_size(const kestrel_engine*, std::size_t* bytes) {
    *bytes = sizeof(SavedState);
    return KESTREL_OK;
}

kestrel_status save(kestrel_engine* engine, void* out, std::size_t bytes) {
    if (bytes != sizeof(SavedState)) return KESTREL_BAD_ARGUMENT;
    const SavedState saved{engine->history, TOY_OTHER_STATE};
    std::memcpy(out, &saved, sizeof saved);
    return KESTREL_OK;
}

kestrel_status restore(kestrel_engine* engine, const void* in, std::size_t bytes) {
    if (bytes != sizeof(SavedState)) return KESTREL_BAD_ARGUMENT;
    SavedState saved;
    std::memcpy(&saved, in, sizeof saved);
    engine->history = saved.history;
    return KESTREL_OK;
}

kestrel_status read_size(const kestrel_engine*, kestrel_readout, std::uint32_t, std::size_t*) {
    return KESTREL_UNSUPPORTED;
}

kestrel_status read(kestrel_engine*, kestrel_readout, std::uint32_t, float*, std::size_t) {
    return KESTREL_UNSUPPORTED;
}

constexpr kestrel_state state{sizeof(kestrel_state), state_size, save, restore, read_size, read};

const void* capability(const char* name) {
    return TOY_NO_STATE == 0 && std::strcmp(name, KESTREL_CAP_STATE) == 0 ? &state : nullptr;
}

const kestrel_engine_api api{
    sizeof(kestrel_engine_api), KESTREL_ABI_VERSION, "toy", manifest, last_error, open, close, info, reset, decode, logits, capability};

}  // namespace toy

extern "C" __attribute__((visibility("default"))) const kestrel_engine_api* kestrel_engine_entry(std::uint32_t caller_abi_version) {
    return caller_abi_version == KESTREL_ABI_VERSION ? &toy::api : nullptr;
}
