#include "runner/session/outputs.hpp"

#include <algorithm>
#include <string>

#include "runner/record/names.hpp"

namespace kestrel::session {

void compare_outputs(const Session& session, Evidence& evidence) {
    evidence.outputs_equal = true;
    evidence.output_text = "all arms, all rounds and the final states bit-identical";
    const auto differ = [&](const std::string& where) {
        if (evidence.outputs_equal) evidence.output_text = "outputs differ, first in " + where;
        evidence.outputs_equal = false;
    };
    // Every window decodes the same tokens from the same state, so one digest must serve them all.
    for (const Window& window : session.windows) {
        if (window.output_digest != session.windows.front().output_digest) {
            differ("replicate " + std::to_string(window.replicate) + ", super-round " + std::to_string(window.super_round) + ", round " +
                   std::to_string(window.round) + ", " + std::string(name_of(window.arm)));
        }
    }
    if (!session.replicates.empty() && session.replicates.front().state_digest[0].empty()) {
        evidence.output_text = "tokens and logits of all arms and rounds bit-identical; final states not compared";
        evidence.warnings.push_back({"STATE", "the engine cannot save its state: outputs were compared, final states were not checked"});
    }
    int distinct = session.plan.tokens;
    for (const Replicate& replicate : session.replicates) {
        distinct = std::min(distinct, replicate.distinct_tokens);
        for (const std::string& digest : replicate.state_digest) {
            if (digest != session.replicates.front().state_digest[0])
                differ("the final state of replicate " + std::to_string(replicate.index));
        }
    }
    evidence.outputs_vacuous = distinct < 2;
    evidence.vacuous_text = std::to_string(distinct) + " distinct tokens in " + std::to_string(session.plan.tokens) +
                            "; a model that always answers the same token cannot show a difference in output";
}

}  // namespace kestrel::session
