// Policies: what a verdict has to withstand, in one named file, so that it is decided before a session and not by its result.
#pragma once

#include <string>
#include <string_view>

namespace kestrel {

struct Policy {
    std::string name;
    double margin = 0.01;                       // relative: the smallest difference that matters
    double alpha = 0.05;                        // error rate of the candidate's interval over all looks; its confidence is 1 - alpha
    double control_confidence = 0.99;           // of the control's interval
    double power = 0.9;                         // with which a planned session is to give a verdict
    double effect_in_margins = 2.0;             // the effect that is to be found with that power
    int maximum_replicates = 30;                // never more, a multiple of six
    int super_rounds = 4;                       // per replicate
    std::string output_rule = "bit-identical";  // or "tolerance:<relative difference>"
};

// Reads a policy from TOML text; `file` is named in errors. Every key must be known, of its type and in its range, and only those that
// have a default above may be left out: name and margin_percent must be there. Throws Error{usage}.
[[nodiscard]] Policy parse_policy(std::string_view text, const std::string& file);

}  // namespace kestrel
