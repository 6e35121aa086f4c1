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

// "22 of 24 equal, 2 excused: ..."; zeros are not mentioned.
std::string choices(const nlohmann::json& checked, const std::string& name, const nlohmann::json& total) {
    std::string text = of(checked.at(name + "_equal"), total) + " equal";
    if (const auto& excused = checked.at(name + "_excused"); excused != 0) {
        text += ", " + excused.dump() + " excused (the margin is within twice the tolerance)";
    }
    if (checked.contains(name + "_skipped") && checked.at(name + "_skipped") != 0) {
        text += ", " + checked.at(name + "_skipped").dump() + " not compared after the first difference";
    }
    return text;
}

std::string choices_text(const nlohmann::json& checked) {
    return field("argmax", choices(checked, "argmax", checked.at("tokens"))) +
           field("greedy tokens", choices(checked, "greedy", checked.at("greedy_total")));
}

std::string expected_text(const nlohmann::json& checked) {
    return field("logits", "largest difference " + scientific(checked.at("relative")) + " of max |logit|, allowed " +
                               scientific(checked.at("tolerance")) + "; " + of(checked.at("differing"), checked.at("elements")) +
                               " elements differ") +
           choices_text(checked);
}

std::string reference_text(const nlohmann::json& checked) {
    std::string out = field("reference", checked.at("reference").get<std::string>());
    for (const nlohmann::json& part : checked.at("parts")) {
        out += field(part.at("name").get<std::string>(),
                     "largest difference " + scientific(part.at("relative")) + " of the position's largest value, allowed " +
                         scientific(part.at("tolerance")) + "; rounding every step to f32 makes " + scientific(part.at("rounding")));
    }
    out += choices_text(checked) + "\n";
    Table table;
    for (const char* title : {"position", "hidden", "final norm", "logits"}) table.add_column(title, Align::right);
    std::size_t index = 0;
    for (const nlohmann::json& position : checked.at("positions")) {
        table.add_row({std::to_string(index++), scientific(position.at(0)), scientific(position.at(1)), scientific(position.at(2))});
    }
    return out + table.text();
}

std::string percent(const nlohmann::json& share) {
    if (!share.is_number()) return "-";
    std::string text(32, '\0');
    const int length = std::snprintf(text.data(), text.size(), "%.1f %%", 100.0 * share.get<double>());
    text.resize(static_cast<std::size_t>(length));
    return text;
}

std::string operators_text(const nlohmann::json& checked) {
    std::string out = field("reference", checked.at("reference").get<std::string>() + ", inputs of seed " + checked.at("seed").dump());
    out += field("columns",
                 "elements whose bits differ from the reference's; the largest difference, and relative to the largest value; the "
                 "largest derived bound, and the largest share of its own bound that an element used; elements whose bits "
                 "differ from the default variant's") +
           "\n";
    Table table;
    for (const char* title : {"operator", "variant", "shape", "output"}) table.add_column(title, Align::left);
    for (const char* title : {"differ", "of", "max abs", "max rel", "bound", "used", "default"}) table.add_column(title, Align::right);
    table.add_column("", Align::left);
    for (const nlohmann::json& r : checked.at("results")) {
        table.add_row({r.at("operator").get<std::string>(), r.at("variant").get<std::string>(), r.at("shape").get<std::string>(),
                       r.at("output").get<std::string>(), r.at("differing").dump(), r.at("elements").dump(), scientific(r.at("max_abs")),
                       scientific(r.at("max_rel")), scientific(r.at("bound")), percent(r.at("used")),
                       r.at("against_default").is_null() ? "" : r.at("against_default").dump(),
                       r.at("passed").get<bool>() ? "" : "FAILED"});
    }
    out += table.text();
    for (const nlohmann::json& one : checked.at("not_available")) {
        out += field("not checked", one.at("operator").get<std::string>() + " " + one.at("variant").get<std::string>() + ": " +
                                        one.at("why").get<std::string>());
    }
    return out;
}

}  // namespace

std::string check_text(const nlohmann::json& checked) {
    const bool compared = checked.value("compared", true);
    std::string out = "check " + checked.at("check").get<std::string>() + ": ";
    out += checked.at("passed").get<bool>() ? "passed\n" : compared ? "FAILED\n" : "NOT CHECKED\n";
    out += field("engine", checked.at("engine").get<std::string>());
    if (checked.contains("results")) return out + operators_text(checked);
    return out + (checked.contains("parts") ? reference_text(checked) : expected_text(checked));
}

}  // namespace kestrel
