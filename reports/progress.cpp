#include "reports/progress.hpp"

#include "reports/format.hpp"

namespace kestrel {

std::string progress_line(const Progress& progress) {
    std::string line = "replicate " + std::to_string(progress.replicate) + "/" + std::to_string(progress.replicates) + "  round " +
                       std::to_string(progress.round) + "/" + std::to_string(progress.rounds);
    if (progress.ratio) line += "  ratio so far " + ratio_text(*progress.ratio);
    if (progress.looks > 0) line += "  undecided after " + count_text(progress.looks, "look");
    if (progress.seconds_to_look && progress.seconds_left && *progress.seconds_to_look < *progress.seconds_left) {
        line += "  next look in about " + duration_text(*progress.seconds_to_look) + ", at most " + duration_text(*progress.seconds_left) +
                " left";
    } else if (progress.seconds_left) {
        line += "  about " + duration_text(*progress.seconds_left) + " left";
    }
    return line;
}

}  // namespace kestrel
