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
void for_each_piece(const TensorSpec& tensor, const Visit& visit) {
    const std::uint64_t blocks = tensor.bytes() / info_of(tensor.type).block_bytes;
    std::uint64_t plane_offset = 0;
    for (const Plane& plane : planes_of(tensor.type)) {
        if (plane.bytes == 0) break;
        const std::uint64_t at_a_time = piece_bytes / plane.bytes;
        for (std::uint64_t first = 0; first < blocks; first += at_a_time) {
            visit(plane, first, std::min(at_a_time, blocks - first), plane_offset + first * plane.bytes);
        }
        plane_offset += blocks * plane.bytes;
    }
}

void put(const WeightLayout& layout, const std::byte* host, std::byte* weights) {
    std::vector<std::byte> buffer(piece_bytes);
    for (const TensorSpec& tensor : layout.tensors()) {
        const std::uint64_t block_bytes = info_of(tensor.type).block_bytes;
        for_each_piece(tensor, [&](const Plane& plane, std::uint64_t first, std::uint64_t count, std::uint64_t offset) {
            const std::byte* from = host + tensor.offset + first * block_bytes;
            if (plane.bytes != block_bytes) {
                const std::byte* part = from + plane.from;
                for (std::uint64_t i = 0; i < count; ++i) std::memcpy(&buffer[i * plane.bytes], part + i * block_bytes, plane.bytes);
                from = buffer.data();
            }
            check(cudaMemcpy(weights + tensor.offset + offset, from, count * plane.bytes, cudaMemcpyHostToDevice), "sending weights");
        });
    }
    check(cudaDeviceSynchronize(), "sending weights");
}

void get(const WeightLayout& layout, const std::byte* weights, std::byte* host) {
    std::vector<std::byte> buffer(piece_bytes);
    for (const TensorSpec& tensor : layout.tensors()) {
        const std::uint64_t block_bytes = info_of(tensor.type).block_bytes;
        for_each_piece(tensor, [&](const Plane& plane, std::uint64_t first, std::uint64_t count, std::uint64_t offset) {
            check(cudaMemcpy(buffer.data(), weights + tensor.offset + offset, count * plane.bytes, cudaMemcpyDeviceToHost),
                  "fetching weights");
            std::byte* to = host + tensor.offset + first * block_bytes + plane.from;
            for (std::uint64_t i = 0; i < count; ++i) std::memcpy(to + i * block_bytes, &buffer[i * plane.bytes], plane.bytes);
        });
    }
}

constexpr WeightArrangement arrangement{
    .bytes = [](const WeightLayout& layout) { return layout.bytes(); },
    .id = [](const WeightLayout& layout) { return "cuda-planes1-" + layout.id(); },
    .put = put,
    .get = get,
};

}  // namespace

const WeightArrangement& plane_arrangement() {
    return arrangement;
}

}  // namespace kestrel::cuda
