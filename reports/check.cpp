#include "reports/check.hpp"

#include "reports/layout.hpp"

namespace kestrel {
namespace {

// Relative differences span many orders of magnitude, so they are shown as powers of ten.
std::string scientific(const nlohmann::json& value) {
    if (!value.is_number()) return "not finite";
    std::string text(32, '\0');
    const int length = std::snprintf(text.data(), text.size(), "%.2e", value.get<double>());
    text.resize(static_cast<std::size_t>(length));
    return text;
}

std::string of(const nlohmann::json& part, const nlohmann::json& whole) {
    return part.dump() + " of " + whole.dump();
}

}  // namespace

std::string check_text(const nlohmann::json& checked) {
    std::string out = "check model: " + std::string(checked.at("passed").get<bool>() ? "passed" : "FAILED") + "\n";
    out += field("engine", checked.at("engine").get<std::string>());
    out += field("logits", "largest difference " + scientific(checked.at("relative")) + " of max |logit|, allowed " +
                               scientific(checked.at("tolerance")) + "; " + of(checked.at("differing"), checked.at("elements")) +
                               " elements differ");
    out += field("argmax", of(checked.at("argmax_equal"), checked.at("tokens")) + " equal");
    out += field("greedy tokens", of(checked.at("greedy_equal"), checked.at("greedy_total")) + " equal");
    return out;
}

}  // namespace kestrel
