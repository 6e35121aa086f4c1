#include "engine/cuda/arrangement.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/cuda/check.hpp"
#include "engine/cuda/planes.hpp"

namespace kestrel::cuda {
namespace {

// Bytes that pass through a buffer on the host at a time.
constexpr std::size_t piece_bytes = std::size_t{8} << 20;

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

void get(const WeightLayout& layout, const std::byte* weights, std::byte* host) {
    std::vector<std::byte> buffer(piece_bytes);
    for (const TensorSpec& tensor : layout.tensors()) {
        const std::uint64_t block_bytes = info_of(tensor.type).block_bytes;
        for_each_piece(tensor.type, tensor.bytes(),
                       [&](const Plane& plane, std::uint64_t first, std::uint64_t count, std::uint64_t offset) {
                           check(cudaMemcpy(buffer.data(), weights + tensor.offset + offset, count * plane.bytes, cudaMemcpyDeviceToHost),
                                 "fetching weights");
                           std::byte* to = host + tensor.offset + first * block_bytes + plane.from;
                           for (std::uint64_t i = 0; i < count; ++i) {
                               std::memcpy(to + i * block_bytes, &buffer[i * plane.bytes], plane.bytes);
                           }
                       });
    }
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
