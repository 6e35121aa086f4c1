// What the arms of a session put out.
#pragma once

#include "runner/record/record.hpp"
#include "runner/stats/verdict.hpp"

namespace kestrel::session {

// Compares tokens and logits of all windows and the final states of all replicates, and counts distinct tokens; fills the evidence's
// output fields, and adds a warning where an engine cannot save its state.
void compare_outputs(const Session& session, Evidence& evidence);

}  // namespace kestrel::session
