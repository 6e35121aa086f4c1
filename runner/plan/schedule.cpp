#include "runner/plan/schedule.hpp"

#include <algorithm>

#include "runner/record/names.hpp"

namespace kestrel {
namespace {

std::array<ArmOrder, 6> make_arm_orders() {
    std::array<ArmOrder, 6> orders{};
    ArmOrder order{ArmRole::base, ArmRole::control, ArmRole::candidate};
    for (ArmOrder& slot : orders) {
        slot = order;
        std::next_permutation(order.begin(), order.end());
    }
    return orders;
}

std::vector<SuperRound> search() {
    std::vector<SuperRound> found;
    std::array<std::size_t, 6> rounds{0, 1, 2, 3, 4, 5};
    do {
        SuperRound sequence{};
        for (std::size_t window = 0; window < sequence.size(); ++window) sequence[window] = arm_orders()[rounds[window / 3]][window % 3];
        if (is_balanced(sequence)) found.push_back(sequence);
    } while (std::next_permutation(rounds.begin(), rounds.end()));
    return found;
}

}  // namespace

const std::array<ArmOrder, 6>& arm_orders() {
    static const std::array<ArmOrder, 6> orders = make_arm_orders();
    return orders;
}

bool is_balanced(const SuperRound& sequence) {
    std::array<std::size_t, 3> position_sum{};
    std::array<std::array<int, 3>, 3> neighbours{};
    for (std::size_t i = 0; i < sequence.size(); ++i) {
        const std::size_t arm = index_of(sequence[i]);
        position_sum[arm] += i;
        ++neighbours[arm][index_of(sequence[(i + 1) % sequence.size()])];
    }
    const bool sums_equal = position_sum[0] == position_sum[1] && position_sum[1] == position_sum[2];
    return sums_equal && std::all_of(neighbours.begin(), neighbours.end(), [](const auto& row) {
               return std::all_of(row.begin(), row.end(), [](int count) { return count == 2; });
           });
}

const std::vector<SuperRound>& super_round_orders() {
    static const std::vector<SuperRound> orders = search();
    return orders;
}

}  // namespace kestrel
