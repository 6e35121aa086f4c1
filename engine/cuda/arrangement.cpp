#include "engine/cuda/arrangement.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "engine/cpu/thread_pool.hpp"
#include "engine/cuda/check.hpp"
#include "engine/cuda/planes.hpp"

namespace kestrel::cuda {
namespace {

// Bytes that pass through a buffer on the host at a time.
constexpr std::size_t piece_bytes = std::size_t{8} << 20;
constexpr std::uint32_t most_fetching_threads = 16;

// visit(plane, first block, blocks, offset of the piece in the tensor) for pieces of a plane that fit the buffer.
template <class Visit>
void for_each_piece(TensorType type, std::uint64_t bytes, const Visit& visit) {
    const std::uint64_t blocks = bytes / info_of(type).block_bytes;
    std::uint64_t plane_offset = 0;
    for (const Plane& plane : planes_of(type)) {
        if (plane.bytes == 0) break;
        const std::uint64_t at_a_time = piece_bytes / plane.bytes;
        for (std::uint64_t first = 0; first < blocks; first += at_a_time) {
            visit(plane, first, std::min(at_a_time, blocks - first), plane_offset + first * plane.bytes);
        }
        plane_offset += blocks * plane.bytes;
    }
}

void put(const WeightLayout& layout, const std::byte* host, std::byte* weights) {
    for (const TensorSpec& tensor : layout.tensors()) {
        put_tensor(tensor.type, tensor.bytes(), host + tensor.offset, weights + tensor.offset);
    }
}

// Part of a plane on its way back into a tensor's blocks.
struct Piece {
    const TensorSpec* tensor;
    Plane plane;
    std::uint64_t first;  // block
    std::uint64_t count;
    std::uint64_t offset;  // of the piece in the tensor on the device
};

cudaError_t fetch(const Piece& piece, const std::byte* weights, std::byte* host, std::vector<std::byte>& buffer) {
    const TensorSpec& tensor = *piece.tensor;
    const std::size_t bytes = piece.count * piece.plane.bytes;
    const std::byte* from = weights + tensor.offset + piece.offset;
    // On the thread's own stream, so that threads do not wait for each other.
    const cudaError_t status = cudaMemcpyAsync(buffer.data(), from, bytes, cudaMemcpyDeviceToHost, cudaStreamPerThread);
    if (status != cudaSuccess) return status;
    if (const cudaError_t end = cudaStreamSynchronize(cudaStreamPerThread); end != cudaSuccess) return end;
    const std::uint64_t block_bytes = info_of(tensor.type).block_bytes;
    std::byte* to = host + tensor.offset + piece.first * block_bytes + piece.plane.from;
    for (std::uint64_t i = 0; i < piece.count; ++i) {
        std::memcpy(to + i * block_bytes, &buffer[i * piece.plane.bytes], piece.plane.bytes);
    }
    return cudaSuccess;
}

// By several threads: one alone writes into the blocks far more slowly than the device sends.
void get(const WeightLayout& layout, const std::byte* weights, std::byte* host) {
    std::vector<Piece> pieces;
    for (const TensorSpec& tensor : layout.tensors()) {
        for_each_piece(tensor.type, tensor.bytes(),
                       [&](const Plane& plane, std::uint64_t first, std::uint64_t count, std::uint64_t offset) {
                           pieces.push_back({&tensor, plane, first, count, offset});
                       });
    }
    cpu::ThreadPool pool(std::min(cpu::available_processors(), most_fetching_threads));
    std::vector<std::vector<std::byte>> buffers(pool.threads(), std::vector<std::byte>(piece_bytes));
    std::vector<cudaError_t> errors(pool.threads(), cudaSuccess);
    std::atomic<std::size_t> next{0};
    pool.run([&](std::size_t part, std::size_t) {
        for (std::size_t i = next.fetch_add(1); i < pieces.size() && errors[part] == cudaSuccess; i = next.fetch_add(1)) {
            errors[part] = fetch(pieces[i], weights, host, buffers[part]);
        }
    });
    for (const cudaError_t error : errors) check(error, "fetching weights");
}

}  // namespace

void put_tensor(TensorType type, std::uint64_t bytes, const std::byte* host, std::byte* device) {
    const std::uint64_t block_bytes = info_of(type).block_bytes;
    std::vector<std::byte> buffer(std::min<std::uint64_t>(piece_bytes, bytes));
    for_each_piece(type, bytes, [&](const Plane& plane, std::uint64_t first, std::uint64_t count, std::uint64_t offset) {
        const std::byte* from = host + first * block_bytes;
        if (plane.bytes != block_bytes) {
            const std::byte* part = from + plane.from;
            for (std::uint64_t i = 0; i < count; ++i) std::memcpy(&buffer[i * plane.bytes], part + i * block_bytes, plane.bytes);
            from = buffer.data();
        }
        check(cudaMemcpy(device + offset, from, count * plane.bytes, cudaMemcpyHostToDevice), "sending weights");
    });
    // A copy from pageable memory may return before the device has it, and our streams do not wait for the default one.
    check(cudaDeviceSynchronize(), "sending weights");
}

const WeightArrangement plane_arrangement{
    .bytes = [](const WeightLayout& layout) { return layout.bytes(); },
    .id = [](const WeightLayout& layout) { return "cuda-planes1-" + layout.id(); },
    .put = put,
    .get = get,
};

}  // namespace kestrel::cuda
