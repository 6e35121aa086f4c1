// The order of windows in a super-round.
#pragma once

#include <array>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

using ArmOrder = std::array<ArmRole, 3>;
using SuperRound = std::array<ArmRole, 18>;  // six rounds of three windows, flattened

// The six orders of the three arms, in lexicographic order of (base, control, candidate).
[[nodiscard]] const std::array<ArmOrder, 6>& arm_orders();

// True if each arm's window positions 0..17 add up to the same sum and each of the nine ordered pairs of neighbours (an arm
// after itself included) occurs twice when the sequence is read cyclically: a linear drift, and an effect of the arm measured
// just before, then cancel within the super-round.
[[nodiscard]] bool is_balanced(const SuperRound& sequence);

// All balanced sequences in which each of the six arm orders is one round, found by trying all 720; the same order every time.
[[nodiscard]] const std::vector<SuperRound>& super_round_orders();

// The arm whose untimed window goes before the super-round, so that its first window too has the neighbour that the balance
// counts on: the sequence's own last arm.
[[nodiscard]] inline ArmRole lead_in_arm(const SuperRound& sequence) {
    return sequence.back();
}

}  // namespace kestrel
