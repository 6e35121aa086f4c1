#include "engine/cuda/arrangement.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "engine/cpu/thread_pool.hpp"
#include "engine/cuda/check.hpp"
#include "engine/cuda/planes.hpp"
#include "engine/cuda/q4_tiles.hpp"
#include "engine/cuda/tile_formats.hpp"

namespace kestrel::cuda {
namespace {

// Bytes that pass through a thread's buffer at a time; a piece is at least one row of tiles, however long.
constexpr std::size_t piece_bytes = std::size_t{8} << 20;
constexpr std::uint32_t most_threads = 16;

// A tensor on both sides.
struct Transfer {
    TensorType type;
    std::uint64_t rows;
    std::uint64_t cols;
    std::byte* host;  // not written when sending
    std::byte* device;
    [[nodiscard]] bool in_tiles() const { return lies_in_tiles(type, rows, cols); }
    [[nodiscard]] std::uint64_t blocks() const { return rows * cols / info_of(type).block_elements; }
};

// Part of a tensor: blocks of one plane, or rows of tiles.
struct Piece {
    const Transfer* tensor;
    Plane plane;          // of a tensor in planes
    std::uint64_t first;  // block, or row of tiles
    std::uint64_t count;
    std::uint64_t offset;  // on the device; of a piece of one plane
};

void add_pieces(const Transfer& tensor, std::vector<Piece>& pieces) {
    if (tensor.in_tiles()) {
        const std::uint64_t row_bytes = tile_rows * bytes_of(info_of(tensor.type), tensor.cols);
        const std::uint64_t at_a_time = std::max<std::uint64_t>(1, piece_bytes / row_bytes);
        const std::uint64_t tiles = tensor.rows / tile_rows;
        for (std::uint64_t first = 0; first < tiles; first += at_a_time) {
            pieces.push_back({&tensor, {}, first, std::min(at_a_time, tiles - first), 0});
        }
        return;
    }
    std::uint64_t plane_offset = 0;
    for (const Plane& plane : planes_of(tensor.type)) {
        if (plane.bytes == 0) break;
        const std::uint64_t at_a_time = piece_bytes / plane.bytes;
        for (std::uint64_t first = 0; first < tensor.blocks(); first += at_a_time) {
            pieces.push_back({&tensor, plane, first, std::min(at_a_time, tensor.blocks() - first), plane_offset + first * plane.bytes});
        }
        plane_offset += tensor.blocks() * plane.bytes;
    }
}

// On the thread's own stream, so that threads do not wait for each other.
cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    const cudaError_t status = cudaMemcpyAsync(to, from, bytes, kind, cudaStreamPerThread);
    return status != cudaSuccess ? status : cudaStreamSynchronize(cudaStreamPerThread);
}

// A piece of tiles, in a buffer: for each plane and each group of tiles beside each other its rows of tiles, which lie together on the
// device too.
class TilesPiece {
  public:
    TilesPiece(const Piece& piece, std::vector<std::byte>& buffer)
        : piece_(&piece),
          buffer_(&buffer),
          format_(tile_format_of(piece.tensor->type)),
          bytes_(format_->plane_bytes(piece.tensor->cols)),
          groups_(piece.tensor->cols / group_cols),
          stored_bytes_(tile_rows * bytes_of(info_of(piece.tensor->type), piece.tensor->cols)),
          row_(stored_bytes_) {
        buffer.resize(piece.count * stored_bytes_);
        std::byte* plane = row_.data();
        for (std::size_t p = 0; p < bytes_.size(); plane += bytes_[p], ++p) row_planes_[p] = plane;
    }
    cudaError_t send() {
        for (std::uint64_t i = 0; i < piece_->count; ++i) {
            format_->pack(piece_->tensor->cols, stored(i), row_planes_);
            for_each_group(
                [&](const std::byte* in_row, std::byte* group, std::size_t bytes) { std::memcpy(group + i * bytes, in_row, bytes); });
        }
        return copy_groups(
            [](std::byte* device, std::byte* host, std::size_t bytes) { return copy(device, host, bytes, cudaMemcpyHostToDevice); });
    }
    cudaError_t fetch() {
        const cudaError_t status = copy_groups(
            [](std::byte* device, std::byte* host, std::size_t bytes) { return copy(host, device, bytes, cudaMemcpyDeviceToHost); });
        if (status != cudaSuccess) return status;
        for (std::uint64_t i = 0; i < piece_->count; ++i) {
            for_each_group(
                [&](std::byte* in_row, const std::byte* group, std::size_t bytes) { std::memcpy(in_row, group + i * bytes, bytes); });
            format_->unpack(piece_->tensor->cols, row_planes_, stored(i));
        }
        return cudaSuccess;
    }

  private:
    [[nodiscard]] std::byte* stored(std::uint64_t row_tile) const {
        return piece_->tensor->host + (piece_->first + row_tile) * stored_bytes_;
    }
    // visit(place in row_, the group's rows in the buffer, bytes of one row of tiles in a group)
    template <class Visit>
    void for_each_group(const Visit& visit) {
        std::byte* in_row = row_.data();
        std::byte* in_buffer = buffer_->data();
        for (const std::size_t plane_bytes : bytes_) {
            const std::size_t bytes = plane_bytes / groups_;
            for (std::size_t g = 0; g < groups_ && bytes > 0; ++g) {
                visit(in_row, in_buffer, bytes);
                in_row += bytes;
                in_buffer += piece_->count * bytes;
            }
        }
    }
    template <class CopyGroup>
    cudaError_t copy_groups(const CopyGroup& copy_group) {
        const std::uint64_t rows_of_tiles = piece_->tensor->rows / tile_rows;
        std::byte* device = piece_->tensor->device;
        cudaError_t status = cudaSuccess;
        for_each_group([&](std::byte*, std::byte* host, std::size_t bytes) {
            if (status == cudaSuccess) status = copy_group(device + piece_->first * bytes, host, piece_->count * bytes);
            device += rows_of_tiles * bytes;
        });
        return status;
    }

    const Piece* piece_;
    std::vector<std::byte>* buffer_;
    const TileFormat* format_;
    std::array<std::size_t, most_tile_planes> bytes_;  // of one row of tiles, in each plane
    std::size_t groups_;
    std::size_t stored_bytes_;
    std::vector<std::byte> row_;  // one row of tiles, packed
    std::array<std::byte*, most_tile_planes> row_planes_{};
};

// The plane's part of each block, between the blocks at `host` and `parts`, which holds them one after the other.
template <class Copy>
void for_each_part(const Piece& piece, std::byte* host, std::byte* parts, const Copy& copy_part) {
    const std::uint64_t block_bytes = info_of(piece.tensor->type).block_bytes;
    std::byte* block = host + piece.first * block_bytes + piece.plane.from;
    for (std::uint64_t i = 0; i < piece.count; ++i) copy_part(block + i * block_bytes, parts + i * piece.plane.bytes, piece.plane.bytes);
}

cudaError_t send_plane(const Piece& piece, std::vector<std::byte>& buffer) {
    buffer.resize(piece.count * piece.plane.bytes);
    for_each_part(piece, piece.tensor->host, buffer.data(),
                  [](const std::byte* block, std::byte* part, std::size_t bytes) { std::memcpy(part, block, bytes); });
    return copy(piece.tensor->device + piece.offset, buffer.data(), buffer.size(), cudaMemcpyHostToDevice);
}

cudaError_t fetch_plane(const Piece& piece, std::vector<std::byte>& buffer) {
    buffer.resize(piece.count * piece.plane.bytes);
    if (const cudaError_t status = copy(buffer.data(), piece.tensor->device + piece.offset, buffer.size(), cudaMemcpyDeviceToHost)) {
        return status;
    }
    for_each_part(piece, piece.tensor->host, buffer.data(),
                  [](std::byte* block, const std::byte* part, std::size_t bytes) { std::memcpy(block, part, bytes); });
    return cudaSuccess;
}

enum class Direction { send, fetch };

// By several threads: one alone rearranges far more slowly than the bus carries.
void transfer(const std::vector<Transfer>& tensors, Direction direction) {
    std::vector<Piece> pieces;
    for (const Transfer& tensor : tensors) add_pieces(tensor, pieces);
    cpu::ThreadPool pool(static_cast<std::uint32_t>(
        std::min<std::size_t>({cpu::available_processors(), most_threads, std::max<std::size_t>(1, pieces.size())})));
    std::vector<cudaError_t> errors(pool.threads(), cudaSuccess);
    std::atomic<std::size_t> next{0};
    pool.run([&](std::size_t part, std::size_t) {
        std::vector<std::byte> buffer;
        for (std::size_t i = next.fetch_add(1); i < pieces.size() && errors[part] == cudaSuccess; i = next.fetch_add(1)) {
            const Piece& piece = pieces[i];
            if (direction == Direction::send) {
                errors[part] = piece.tensor->in_tiles() ? TilesPiece(piece, buffer).send() : send_plane(piece, buffer);
            } else {
                errors[part] = piece.tensor->in_tiles() ? TilesPiece(piece, buffer).fetch() : fetch_plane(piece, buffer);
            }
        }
    });
    for (const cudaError_t error : errors) check(error, direction == Direction::send ? "sending weights" : "fetching weights");
}

Transfer transfer_of(const TensorSpec& tensor, std::byte* host, std::byte* device) {
    const std::uint64_t rows = is_matrix(tensor.role) ? tensor.shape.at(0) : 1;
    return {tensor.type, rows, tensor.elements() / rows, host + tensor.offset, device + tensor.offset};
}

std::vector<Transfer> transfers_of(const WeightLayout& layout, std::byte* host, std::byte* device) {
    std::vector<Transfer> all;
    for (const TensorSpec& tensor : layout.tensors()) all.push_back(transfer_of(tensor, host, device));
    return all;
}

void put(const WeightLayout& layout, const std::byte* host, std::byte* weights) {
    // The room between tensors too, so that a loaded block is the same bytes every time.
    check(cudaMemset(weights, 0, layout.bytes()), "clearing memory for weights");
    check(cudaDeviceSynchronize(), "clearing memory for weights");
    transfer(transfers_of(layout, const_cast<std::byte*>(host), weights), Direction::send);
}

void get(const WeightLayout& layout, const std::byte* weights, std::byte* host) {
    transfer(transfers_of(layout, host, const_cast<std::byte*>(weights)), Direction::fetch);
}

}  // namespace

void put_tensor(TensorType type, std::uint64_t rows, std::uint64_t cols, const std::byte* host, std::byte* device) {
    transfer({{type, rows, cols, const_cast<std::byte*>(host), device}}, Direction::send);
}

const WeightArrangement device_arrangement{
    .bytes = [](const WeightLayout& layout) { return layout.bytes(); },
    .id = [](const WeightLayout& layout) { return "cuda-tiles1-" + layout.id(); },
    .put = put,
    .get = get,
};

}  // namespace kestrel::cuda
