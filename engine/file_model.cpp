#include "engine/file_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/cpu/thread_pool.hpp"
#include "engine/error.hpp"
#include "engine/tensor_check.hpp"
#include "engine/text.hpp"

namespace kestrel {
namespace {

constexpr std::uint64_t none = ~std::uint64_t{0};

[[noreturn]] void not_finite(const FileTensor& tensor, std::uint64_t element, const char* what) {
    bad_model(tensor.where + ": element " + std::to_string(element) + " of " + tensor.type_name + text_of(tensor.shape) + " " + what +
              "; the file is damaged or was exported wrongly");
}

// Rows of a matrix, copied or, through `row`, quantised; returns the first bad element or none.
std::uint64_t load_rows(const FileTensor& from, const TensorSpec& to, cpu::Range rows, std::span<float> row, std::byte* out) {
    const TensorTypeInfo& source = info_of(*from.type);
    const TensorTypeInfo& target = info_of(to.type);
    const std::uint64_t cols = to.shape.back();
    const std::byte* stored = from.bytes.data() + bytes_of(source, rows.first * cols);
    std::byte* held = out + bytes_of(target, rows.first * cols);
    const std::uint64_t elements = (rows.last - rows.first) * cols;
    const auto bad = first_not_finite(*from.type, stored, elements);
    if (bad) return rows.first * cols + *bad;
    if (to.type == *from.type) {
        std::memcpy(held, stored, bytes_of(target, elements));
        return none;
    }
    for (std::size_t r = rows.first; r < rows.last; ++r) {
        dequantise(*from.type, stored, row);
        quantise_q4_0(row, held);
        // A block whose largest value is beyond eight times the largest half has no q4_0 scale.
        const auto beyond = first_not_finite(to.type, held, cols);
        if (beyond) return r * cols + *beyond;
        stored += bytes_of(source, cols);
        held += bytes_of(target, cols);
    }
    return none;
}

void load_matrix(const FileTensor& from, const TensorSpec& to, cpu::ThreadPool& pool, std::byte* block) {
    std::vector<std::uint64_t> bad(pool.threads(), none);
    const std::uint64_t cols = to.shape.back();
    const std::uint64_t rows = to.elements() / cols;
    std::vector<float> scratch(pool.threads() * cols);
    pool.run([&](std::size_t part, std::size_t parts) {
        const cpu::Range mine = cpu::share_of(rows, 16, part, parts);
        if (mine.first < mine.last) bad[part] = load_rows(from, to, mine, std::span(scratch).subspan(part * cols, cols), block + to.offset);
    });
    const std::uint64_t first = *std::min_element(bad.begin(), bad.end());
    if (first == none) return;
    const bool stored_badly = first_not_finite(*from.type, from.bytes.data(), to.elements()).has_value();
    not_finite(from, first, stored_badly ? "is NaN or infinite" : "is in a block too large for q4_0 (above 524032)");
}

}  // namespace

FileModel::FileModel(std::filesystem::path where, ModelDims shape, TensorFiles files, FileFormat format)
    : ModelSource(std::move(where), std::move(shape)), files_(std::move(files)), format_(std::move(format)) {
    std::vector<const FileTensor*> used;
    for (const TensorSpec& tensor : tensors_of(dims)) used.push_back(bound_.emplace(tensor.name, &bind(tensor)).first->second);
    for (const TensorSpec& tensor : format_.unread) {
        if (find(tensor) != nullptr) used.push_back(&bind(tensor));
    }
    std::sort(used.begin(), used.end());
    for (const auto& [name, tensor] : files_.table) {
        if (format_.ignorable(name) || std::binary_search(used.begin(), used.end(), &tensor)) continue;
        bad_model(tensor.where + ": extra tensor " + tensor.type_name + text_of(tensor.shape) +
                  ", expected none of this name in a model of this configuration; decoding without it would give other results");
    }
}

const FileTensor* FileModel::find(const TensorSpec& tensor) const {
    const FileTensor* found = nullptr;
    for (const std::string& name : format_.spellings(tensor)) {
        const auto at = files_.table.find(name);
        if (at == files_.table.end()) continue;
        if (found != nullptr) bad_model(at->second.where + ": duplicate of " + found->where + ", expected one of the two");
        found = &at->second;
    }
    return found;
}

const FileTensor& FileModel::bind(const TensorSpec& tensor) const {
    const FileTensor* found = find(tensor);
    if (found == nullptr) {
        bad_model(files_.missing_in + ": tensor " + in_quotes(format_.spellings(tensor).front()) + " is missing; expected shape " +
                  text_of(tensor.shape));
    }
    // A convolution's middle extent is 1 and may be left out.
    const std::vector<std::uint64_t>& wanted = tensor.shape;
    const bool same = found->shape == wanted || (tensor.role == Role::conv && found->shape == std::vector{wanted[0], wanted[2]});
    if (!same) bad_model(found->where + ": expected shape " + text_of(wanted) + ", found " + text_of(found->shape));
    if (!found->type) {
        fail(KESTREL_UNSUPPORTED,
             found->where + ": expected type F32, BF16, F16 or, in GGUF files, Q4_0, Q4_1, Q8_0 or Q6_K, found " + found->type_name);
    }
    return *found;
}

TensorType FileModel::stored_type(const TensorSpec& matrix) const {
    return *of(matrix).type;
}

void FileModel::load(const WeightLayout& layout, std::uint32_t threads, std::byte* block) const {
    cpu::ThreadPool pool(threads);
    std::vector<float> values;
    for (const TensorSpec& tensor : layout.tensors()) {
        const FileTensor& from = of(tensor);
        if (is_matrix(tensor.role)) {
            load_matrix(from, tensor, pool, block);
            continue;
        }
        const auto bad = first_not_finite(*from.type, from.bytes.data(), tensor.elements());
        if (bad) not_finite(from, *bad, "is NaN or infinite");
        values.resize(tensor.elements());
        dequantise(*from.type, from.bytes.data(), values);
        format_.convert(tensor.role, values);
        const auto odd = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
        if (odd != values.end()) not_finite(from, static_cast<std::uint64_t>(odd - values.begin()), "is too large to compute with");
        to_block(tensor, values, block);
    }
}

}  // namespace kestrel
