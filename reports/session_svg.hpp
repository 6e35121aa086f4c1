// The picture of one session.
#pragma once

#include <string>

#include "runner/record/record.hpp"

namespace kestrel {

// A self-contained SVG document, 960 x 640: left, each replicate's difference in percent for control and candidate, with interval, mean
// and the margin as a band; right, every round's ms/token of the three arms in the order measured. A session without a verdict shows the
// rounds it has and says so.
[[nodiscard]] std::string session_svg(const Session& session);

}  // namespace kestrel
