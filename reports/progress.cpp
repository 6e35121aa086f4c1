#include "reports/progress.hpp"

#include "reports/format.hpp"

namespace kestrel {

std::string progress_line(const Progress& progress) {
    std::string line = "replicate " + std::to_string(progress.replicate) + "/" + std::to_string(progress.replicates) + "  round " +
                       std::to_string(progress.round) + "/" + std::to_string(progress.rounds);
    if (progress.ratio) line += "  ratio so far " + ratio_text(*progress.ratio);
    if (progress.seconds_left) line += "  about " + duration_text(*progress.seconds_left) + " left";
    return line;
}

}  // namespace kestrel
