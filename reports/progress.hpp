// What a running session shows.
#pragma once

#include <optional>
#include <string>

namespace kestrel {

struct Progress {
    int replicate = 0;  // the one in progress, counted from 1
    int replicates = 0;
    int round = 0;  // finished rounds of that replicate
    int rounds = 0;
    std::optional<double> ratio;            // base / candidate so far; never a verdict, which only the plan's look may give
    std::optional<double> seconds_left;     // to the plan's end
    std::optional<double> seconds_to_look;  // to the next look, where it may end
    int looks = 0;                          // taken so far, none of which ended the session
};

// One line without a line break: "replicate 2/12  round 7/24  ratio so far 1.1476  next look in about
// 20 s, at most 45 s left".
[[nodiscard]] std::string progress_line(const Progress& progress);

}  // namespace kestrel
