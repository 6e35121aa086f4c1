// What `check gdn|rq|attn` runs: operators on seeded inputs, and how far a correct f32 engine may be from the truth.
//
// The bounds are derived, per output element, from u = 2^-24 and the inputs, for any order of summation and with or without fused
// multiply-adds. A sum of n products is off by at most sum_bound(n) times the sum of their magnitudes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/plugin/engine_client.hpp"

namespace kestrel::session {

struct OperatorCase {
    std::string op;
    std::string shape;        // for people
    std::string stored_type;  // the variant that the reference runs too; empty: variants are ways of computing the same
    bool principal = false;   // a check that could not run this one has checked nothing
    std::vector<plugin::OperatorTensor> inputs;
    std::vector<plugin::OperatorTensor> outputs;  // shapes only
    std::vector<std::string> output_names;
    std::vector<std::vector<double>> bounds;  // per output and element; 0 means that the bits must be equal
};

// n u if that is smaller, else 8 sqrt(n) u: rounding errors of random sign grow as the square root, and the factor 8 fails with a
// probability below 2 n e^-32 (Higham and Mary, SIAM J. Sci. Comput. 41 (2019), theorem 3.1).
[[nodiscard]] double sum_bound(std::size_t n);

// Of "gdn", "rq" or "attn". Throws Error(usage) for another name.
[[nodiscard]] std::vector<OperatorCase> operator_cases(const std::string& check, std::uint64_t seed);

}  // namespace kestrel::session
