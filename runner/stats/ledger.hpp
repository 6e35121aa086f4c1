// What sealed sessions together say about the service itself: how often identical builds were called different, how often a planted
// difference was found, and how much replicates scatter here.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runner/record/record.hpp"

namespace kestrel {

// The exact two-sided binomial interval (Clopper and Pearson 1934).
[[nodiscard]] Proportion exact_proportion(int count, int of, double confidence = 0.95);

// Rows in order of host, device, engine and mode.
[[nodiscard]] std::vector<LedgerRow> summarise(std::span<const LedgerEntry> entries);

// Of the controls' ln ratio between replicates, pooled over the entries by degrees of freedom; nothing if there are none.
[[nodiscard]] std::optional<double> pooled_control_sd(std::span<const LedgerEntry> entries);

}  // namespace kestrel
