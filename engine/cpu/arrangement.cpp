#include "engine/cpu/arrangement.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/cpu/row_layout.hpp"
#include "engine/cpu/thread_pool.hpp"

namespace kestrel::cpu {
namespace {

static_assert(overrun <= memory_alignment);

bool is_quantised(TensorType type) {
    return info_of(type).block_elements > 1;
}

void arrange_rows(TensorType type, std::size_t cols, Range rows, std::byte* tensor) {
    const std::size_t row_bytes = bytes_of(info_of(type), cols);
    std::vector<std::byte> stored(row_bytes);
    for (std::size_t r = rows.first; r < rows.last; ++r) {
        std::byte* row = tensor + r * row_bytes;
        std::memcpy(stored.data(), row, row_bytes);
        arrange_row(type, cols, stored.data(), row);
    }
}

void arrange(const WeightLayout& layout, std::uint32_t threads, std::byte* weights) {
    ThreadPool pool(threads);
    for (const TensorSpec& tensor : layout.tensors()) {
        if (!is_quantised(tensor.type)) continue;
        const std::size_t cols = tensor.shape.back();
        const std::size_t rows = tensor.elements() / cols;
        pool.run([&](std::size_t part, std::size_t parts) {
            arrange_rows(tensor.type, cols, share_of(rows, 1, part, parts), weights + tensor.offset);
        });
    }
}

void restore(const TensorSpec& tensor, const std::byte* weights, std::uint64_t first, std::uint64_t count, std::byte* stored) {
    const TensorTypeInfo& info = info_of(tensor.type);
    const std::byte* data = weights + tensor.offset;
    if (!is_quantised(tensor.type)) {
        std::memcpy(stored, data + bytes_of(info, first), bytes_of(info, count));
        return;
    }
    const std::uint64_t cols = tensor.shape.back();
    for (const std::uint64_t end = first + count; first < end;) {
        const std::uint64_t column = first % cols;
        const std::uint64_t here = std::min(cols - column, end - first);
        const std::byte* row = data + first / cols * bytes_of(info, cols);
        restore_blocks(tensor.type, cols, row, column / info.block_elements, here / info.block_elements, stored);
        stored += bytes_of(info, here);
        first += here;
    }
}

}  // namespace

const WeightArrangement row_arrangement{
    .bytes = [](const WeightLayout& layout) { return layout.bytes() + memory_alignment; },
    .id = [](const WeightLayout& layout) { return "cpu-rows1-" + layout.id(); },
    .put = nullptr,
    .get = nullptr,
    .arrange = arrange,
    .restore = restore,
};

}  // namespace kestrel::cpu
