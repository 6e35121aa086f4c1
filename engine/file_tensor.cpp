#include "engine/file_tensor.hpp"

#include <algorithm>

#include "engine/error.hpp"
#include "engine/text.hpp"

namespace kestrel {

void check_overlap(const TensorTable& table) {
    std::vector<const TensorTable::value_type*> order;
    for (const auto& entry : table) {
        if (!entry.second.bytes.empty()) order.push_back(&entry);
    }
    const auto begin = [](const auto* entry) { return entry->second.bytes.data(); };
    std::sort(order.begin(), order.end(), [&](const auto* a, const auto* b) { return begin(a) < begin(b); });
    for (std::size_t i = 1; i < order.size(); ++i) {
        if (begin(order[i]) < begin(order[i - 1]) + order[i - 1]->second.bytes.size()) {
            bad_model(order[i]->second.where + " and tensor " + in_quotes(order[i - 1]->first) + " overlap; the file is damaged");
        }
    }
}

}  // namespace kestrel
