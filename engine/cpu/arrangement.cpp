#include "engine/cpu/arrangement.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "engine/cpu/row_layout.hpp"
#include "engine/cpu/thread_pool.hpp"

namespace kestrel::cpu {
namespace {

constexpr std::size_t room_behind = memory_alignment;
static_assert(overrun <= room_behind);

bool is_quantised(TensorType type) {
    return info_of(type).block_elements > 1;
}

// Each row passes through `stored`, a row's bytes.
void arrange_rows(TensorType type, std::size_t cols, Range rows, std::byte* tensor, std::span<std::byte> stored) {
    for (std::size_t r = rows.first; r < rows.last; ++r) {
        std::byte* row = tensor + r * stored.size();
        std::memcpy(stored.data(), row, stored.size());
        arrange_row(type, cols, stored.data(), row);
    }
}

void arrange(const WeightLayout& layout, std::uint32_t threads, std::byte* weights) {
    std::memset(weights + layout.bytes(), 0, room_behind);
    ThreadPool pool(threads);
    std::vector<std::byte> scratch;
    for (const TensorSpec& tensor : layout.tensors()) {
        if (!is_quantised(tensor.type)) continue;
        const std::size_t cols = tensor.shape.back();
        const std::size_t rows = tensor.elements() / cols;
        const std::size_t row_bytes = bytes_of(info_of(tensor.type), cols);
        scratch.resize(pool.threads() * row_bytes);
        pool.run([&](std::size_t part, std::size_t parts) {
            arrange_rows(tensor.type, cols, share_of(rows, 1, part, parts), weights + tensor.offset,
                         std::span(scratch).subspan(part * row_bytes, row_bytes));
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
    .bytes = [](const WeightLayout& layout) { return layout.bytes() + room_behind; },
    .id = [](const WeightLayout& layout) { return "cpu-rows1-" + layout.id(); },
    .put = nullptr,
    .get = nullptr,
    .arrange = arrange,
    .restore = restore,
};

}  // namespace kestrel::cpu
