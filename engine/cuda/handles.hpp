// Owners of CUDA's objects: they move, and free without throwing. One owner per handle.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "engine/cuda/check.hpp"

namespace kestrel::cuda {

// `Free` releases a handle of pointer type; its status is dropped, because after a device fault every call fails and nobody can act on it.
template <class Handle, cudaError_t (*Free)(Handle)>
class Owner {
  public:
    Owner() = default;
    explicit Owner(Handle handle) : handle_(handle) {}
    [[nodiscard]] Handle get() const noexcept { return handle_.get(); }
    [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }

  private:
    struct Release {
        void operator()(Handle handle) const noexcept { (void)Free(handle); }
    };
    std::unique_ptr<std::remove_pointer_t<Handle>, Release> handle_;
};

using Stream = Owner<cudaStream_t, cudaStreamDestroy>;
using Event = Owner<cudaEvent_t, cudaEventDestroy>;
using Graph = Owner<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owner<cudaGraphExec_t, cudaGraphExecDestroy>;

// Independent of the default stream, so that two engines in a process do not wait for each other.
[[nodiscard]] inline Stream make_stream() {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
    return Stream(stream);
}

[[nodiscard]] inline Event make_event() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "creating an event");
    return Event(event);
}

// `count` elements on the device, or page-locked on the host; uninitialised. T is plain data.
template <class T, cudaError_t (*Free)(void*)>
class MemoryOf {
  public:
    MemoryOf() = default;
    MemoryOf(void* memory, std::size_t count) : memory_(memory), count_(count) {}
    [[nodiscard]] T* get() const noexcept { return static_cast<T*>(memory_.get()); }
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(T); }

  private:
    Owner<void*, Free> memory_;
    std::size_t count_ = 0;
};
template <class T>
using Buffer = MemoryOf<T, cudaFree>;
template <class T>
using PinnedBuffer = MemoryOf<T, cudaFreeHost>;

template <class T>
[[nodiscard]] Buffer<T> make_buffer(std::size_t count) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(T)), "allocating device memory");
    return Buffer<T>(memory, count);
}

template <class T>
[[nodiscard]] PinnedBuffer<T> make_pinned(std::size_t count) {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, count * sizeof(T)), "allocating page-locked memory");
    return PinnedBuffer<T>(memory, count);
}

}  // namespace kestrel::cuda
