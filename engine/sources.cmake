# Sources of the engine libraries, relative to this folder: what all share, then each backend's own. The build adds the assembler file with
# the manifest.
set(KESTREL_COMMON_SOURCES
    abi.cpp
    digest.cpp
    engine.cpp
    file_model.cpp
    file_tensor.cpp
    ggml_types.cpp
    gguf.cpp
    gguf_model.cpp
    gguf_values.cpp
    hf_model.cpp
    json_file.cpp
    mapped_file.cpp
    memory.cpp
    model_config.cpp
    model_source.cpp
    operators.cpp
    quantise.cpp
    safetensors.cpp
    switches.cpp
    synthetic.cpp
    synthetic_blocks.cpp
    tensor_check.cpp
    tensor_type.cpp
    text.cpp
    weights.cpp
    cpu/thread_pool.cpp) # synthetic weights are made on the host, whatever decodes

set(KESTREL_CPU_SOURCES
    cpu/backend.cpp
    cpu/decoder.cpp
    cpu/decoder_state.cpp
    cpu/kernels.cpp
    cpu/kernels_avx2.cpp
    cpu/kernels_avx512.cpp
    cpu/kernels_base.cpp
    cpu/library.cpp
    cpu/ops.cpp
    cpu/workspace.cpp)

set(KESTREL_TRUTH_SOURCES
    truth/backend.cpp
    truth/decoder.cpp
    truth/rounded_steps.cpp
    truth/sequence.cpp
    truth/steps.cpp)

set(KESTREL_CUDA_SOURCES
    cpu/workspace.cpp
    cuda/argmax.cu
    cuda/arrangement.cpp
    cuda/attention.cu
    cuda/backend.cpp
    cuda/capabilities.cpp
    cuda/check.cpp
    cuda/conv.cu
    cuda/decoder.cpp
    cuda/decoder_state.cpp
    cuda/elementwise.cu
    cuda/gdn.cu
    cuda/gemv_f32.cu
    cuda/norms.cu
    cuda/operators.cpp
    cuda/rq_gemv.cu
    cuda/synthetic.cu)
