/* The interface between kestrel-ab and a decode engine: C, versioned, and the only header of engine/ that others read.
 *
 * A library exports one symbol, KESTREL_ENTRY_SYMBOL, and embeds its manifest in an ELF note (see kestrel_engine_api.manifest).
 * No exception, C++ object or call to exit() crosses this interface. The engine never measures time: the clock belongs to
 * the caller. A handle is used by one thread at a time. Between calls an engine uses no CPU.
 */
#ifndef KESTREL_ENGINE_ABI_H
#define KESTREL_ENGINE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KESTREL_ABI_VERSION 1u
#define KESTREL_ENTRY_SYMBOL "kestrel_engine_entry"

/* ELF note that carries the manifest: allocated section, note name, note type. Readable without running the library. */
#define KESTREL_MANIFEST_SECTION ".note.kestrel.manifest"
#define KESTREL_MANIFEST_NOTE_NAME "kestrel"
#define KESTREL_MANIFEST_NOTE_TYPE 1u

typedef enum kestrel_status {
    KESTREL_OK = 0,
    KESTREL_BAD_ARGUMENT = 1,  /* the call itself is wrong: null pointer, token out of range, buffer too small */
    KESTREL_BAD_MODEL = 2,     /* the model file or description is damaged or inconsistent */
    KESTREL_BAD_SWITCH = 3,    /* unknown switch name or illegal value in a switch list */
    KESTREL_UNSUPPORTED = 4,   /* valid, but this engine cannot do it */
    KESTREL_OUT_OF_MEMORY = 5, /* host or device memory */
    KESTREL_DEVICE_FAULT = 6,  /* the device is lost or its context is poisoned */
    KESTREL_INTERNAL = 7       /* a bug in the engine */
} kestrel_status;

typedef struct kestrel_engine kestrel_engine; /* one opened model */

typedef struct kestrel_switch {
    const char* name;  /* e.g. "VLLM_CUDA_GDN_DELTA" */
    const char* value; /* e.g. "ref" */
} kestrel_switch;

typedef struct kestrel_open_args {
    uint32_t struct_size;           /* sizeof(kestrel_open_args) */
    uint32_t threads;               /* host threads that decode may use; 0 = as many as the process may run on */
    const char* model;              /* UTF-8 path: description *.toml, Hugging Face directory, or *.gguf */
    const kestrel_switch* switches; /* null: the environment counts. Not null, even if empty: the environment is ignored */
    size_t switch_count;
    uint32_t max_positions; /* capacity of the key/value cache, tokens; at least 1 */
    uint32_t reserved;      /* 0 */
    void* weights;          /* lent memory, already filled by borrow->load; null: the engine allocates and loads */
    size_t weights_bytes;
    void* workspace; /* lent memory for state, cache and scratch; null: the engine allocates */
    size_t workspace_bytes;
} kestrel_open_args;

typedef struct kestrel_model_info {
    uint32_t struct_size;
    uint32_t layers; /* gdn_layers + attention_layers */
    uint32_t gdn_layers;
    uint32_t attention_layers;
    uint32_t vocab; /* logits per token */
    uint32_t hidden;
    uint32_t max_positions;
    uint32_t threads;     /* threads in use */
    uint64_t parameters;  /* weights in the model, elements */
    uint64_t state_bytes; /* recurrent state of all GDN layers */
} kestrel_model_info;

typedef struct kestrel_engine_api {
    uint32_t struct_size;
    uint32_t abi_version;    /* KESTREL_ABI_VERSION of the library */
    const char* engine_name; /* e.g. "kestrel_cpu"; the same for all variants of an engine */

    /* The manifest as JSON text, not terminated; the same bytes as the ELF note holds. */
    const char* (*manifest)(size_t* bytes);

    /* Text of the last error of the calling thread; "" if none. Valid until that thread's next call. */
    const char* (*last_error)(void);

    kestrel_status (*open)(const kestrel_open_args* args, kestrel_engine** out);
    void (*close)(kestrel_engine* engine);
    kestrel_status (*info)(const kestrel_engine* engine, kestrel_model_info* out);

    /* Back to position 0 with zero state. */
    kestrel_status (*reset)(kestrel_engine* engine);

    /* Feeds one token, 0 <= token < vocab, at the next position; *next = greedy choice (lowest index among equals), on the host when the
     * call returns. */
    kestrel_status (*decode)(kestrel_engine* engine, int32_t token, int32_t* next);

    /* The logits of the last decoded token, f32[vocab]; count must equal vocab. */
    kestrel_status (*logits)(kestrel_engine* engine, float* out, size_t count);

    /* A table of the capability below with this name, or null if the engine does not have it. */
    const void* (*capability)(const char* name);
} kestrel_engine_api;

typedef const kestrel_engine_api* (*kestrel_engine_entry_fn)(uint32_t caller_abi_version); /* null: version not served */

/* ---- Optional capabilities: each absent or right ---- */

#define KESTREL_CAP_ALLOCATE "allocate.v1"
#define KESTREL_CAP_BORROW "borrow.v1"
#define KESTREL_CAP_STATE "state.v1"
#define KESTREL_CAP_SWITCHES "switches.v1"
#define KESTREL_CAP_GRAPH "graph.v1"
#define KESTREL_CAP_OPERATOR "operator.v1"

typedef enum kestrel_memory_kind { KESTREL_MEMORY_HOST = 0, KESTREL_MEMORY_DEVICE = 1 } kestrel_memory_kind;

typedef struct kestrel_allocate { /* for memory that the caller cannot allocate itself */
    uint32_t struct_size;
    kestrel_status (*allocate)(kestrel_memory_kind kind, size_t bytes, void** out);
    void (*release)(kestrel_memory_kind kind, void* memory);
    kestrel_status (*fill)(kestrel_memory_kind kind, void* memory, int byte, size_t bytes); /* sets every byte; done when it returns */
    /* What identifies the device that decode runs on: name, UUID, driver; text in `out`, cut to `size` bytes with the null. */
    kestrel_status (*device)(char* out, size_t size);
    /* Between ordinary host memory and memory of this kind; done when they return. Several threads may call them at once, for pieces that
     * do not overlap. A library whose struct_size ends before them does not have them. */
    kestrel_status (*copy_in)(kestrel_memory_kind kind, void* memory, const void* host, size_t bytes);
    kestrel_status (*copy_out)(kestrel_memory_kind kind, const void* memory, void* host, size_t bytes);
} kestrel_allocate;

typedef struct kestrel_memory_needs {
    uint32_t struct_size;
    uint32_t kind; /* kestrel_memory_kind of both */
    size_t weights_bytes;
    size_t workspace_bytes;
    size_t alignment;   /* bytes, a power of two, of both */
    char layout_id[64]; /* arms may share weights only if it is equal */
} kestrel_memory_needs;

typedef struct kestrel_borrow { /* memory owned by the caller; addresses fixed until close */
    uint32_t struct_size;
    kestrel_status (*needs)(const kestrel_open_args* args, kestrel_memory_needs* out);
    /* Loads the model named in args into args->weights. What it writes follows from the model's file, or the files in its directory and
     * below, from the switches, the device and this library: a caller may keep a loaded block and lend it again, to any library whose own
     * load would write the same bytes. */
    kestrel_status (*load)(const kestrel_open_args* args);
    /* Digest of the loaded weights in canonical form (per tensor: name, shape, f32 values in row-major order; digest.hpp
     * defines it), 64 hexadecimal digits and a null: equal for any layout that holds the same weights. Not cryptographic. */
    kestrel_status (*digest)(const kestrel_open_args* args, char out[65]);
} kestrel_borrow;

typedef enum kestrel_readout {
    KESTREL_READ_HIDDEN = 0,     /* residual stream after the last layer, f32[hidden] */
    KESTREL_READ_FINAL_NORM = 1, /* input of the head, f32[hidden] */
    KESTREL_READ_GDN_STATE = 2   /* recurrent state of layer `layer`, f32[v_heads][key_dim][value_dim]; `layer` counts all layers */
} kestrel_readout;

typedef struct kestrel_state { /* the sequence so far: recurrent and convolution state, key/value cache, position */
    uint32_t struct_size;
    kestrel_status (*size)(const kestrel_engine* engine, size_t* bytes);
    kestrel_status (*save)(kestrel_engine* engine, void* out, size_t bytes);
    kestrel_status (*restore)(kestrel_engine* engine, const void* in, size_t bytes);
    /* Elements of a readout; KESTREL_UNSUPPORTED if the layer has none. */
    kestrel_status (*read_size)(const kestrel_engine* engine, kestrel_readout what, uint32_t layer, size_t* count);
    kestrel_status (*read)(kestrel_engine* engine, kestrel_readout what, uint32_t layer, float* out, size_t count);
} kestrel_state;

typedef struct kestrel_switch_info {
    uint32_t struct_size;
    uint32_t value_count;
    const char* name;
    const char* const* values; /* legal values in a switch list; values[0] is the default */
    const char* description;
} kestrel_switch_info;

typedef struct kestrel_switches {
    uint32_t struct_size;
    size_t (*count)(void);
    kestrel_status (*describe)(size_t index, kestrel_switch_info* out);
    /* The value this engine runs with: one of describe(index).values. */
    kestrel_status (*effective)(const kestrel_engine* engine, size_t index, const char** value);
} kestrel_switches;

typedef struct kestrel_graph { /* the captured token, for the census; a cudaGraph_t on CUDA */
    uint32_t struct_size;
    kestrel_status (*captured)(kestrel_engine* engine, void** graph);
} kestrel_graph;

typedef struct kestrel_tensor { /* f32, row-major, contiguous */
    float* data;
    uint32_t rank;
    uint32_t reserved;
    uint64_t shape[4];
} kestrel_tensor;

typedef struct kestrel_operator { /* one operator alone, through the code that decode runs */
    uint32_t struct_size;
    /* Operators: see engine documentation. `variant` names a switch value or "" for the default. */
    kestrel_status (*run)(const char* name, const char* variant, const kestrel_tensor* inputs, size_t input_count, kestrel_tensor* outputs,
                          size_t output_count);
} kestrel_operator;

#ifdef __cplusplus
}
#endif
#endif
