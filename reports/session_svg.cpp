#include "reports/session_svg.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "reports/format.hpp"
#include "runner/record/names.hpp"

namespace kestrel {
namespace {

// Colours that differ in lightness too, so that they survive a grey print (palette: Okabe and Ito, 2008).
constexpr const char* base_colour = "#555555";
constexpr const char* control_colour = "#e69f00";
constexpr const char* candidate_colour = "#0072b2";

const char* colour_of(ArmRole role) {
    switch (role) {
        case ArmRole::base:
            return base_colour;
        case ArmRole::control:
            return control_colour;
        case ArmRole::candidate:
            break;
    }
    return candidate_colour;
}

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // control characters are not XML
        }
    }
    return out;
}

std::string number(double value) {
    return fixed_text(value, 1);
}

std::string text_at(double x, double y, const std::string& text, const char* attributes = "") {
    return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + attributes + ">" + escaped(text) + "</text>\n";
}

std::string line_at(double x1, double y1, double x2, double y2, const std::string& attributes) {
    return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) + "\" " + attributes +
           "/>\n";
}

std::string dot_at(double x, double y, double radius, const std::string& attributes) {
    return "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(radius) + "\" " + attributes + "/>\n";
}

// A vertical axis: values from low (bottom) to high (top).
struct Axis {
    double low = 0.0;
    double high = 1.0;
    double top = 0.0;
    double bottom = 1.0;
    [[nodiscard]] double at(double value) const { return bottom - (value - low) / (high - low) * (bottom - top); }
};

Axis axis_over(const std::vector<double>& values, double top, double bottom) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const double spread = std::max(*most - *least, std::max(std::abs(*most), 1e-9) * 1e-6);
    return {*least - 0.06 * spread, *most + 0.06 * spread, top, bottom};
}

// 1, 2 or 5 times a power of ten, so that four to ten steps cover the axis.
double tick_step(const Axis& axis) {
    const double rough = (axis.high - axis.low) / 8.0;
    const double decade = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor * decade >= rough) return factor * decade;
    }
    return 10.0 * decade;
}

std::string ticks(const Axis& axis, double left, double right) {
    const double step = tick_step(axis);
    const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 9);
    std::string out;
    for (double i = std::ceil(axis.low / step); i * step <= axis.high; i += 1.0) {
        const double y = axis.at(i * step);
        out += line_at(left, y, right, y, "stroke=\"#dddddd\"");
        out += text_at(left - 6.0, y + 4.0, fixed_text(i * step, decimals), "text-anchor=\"end\"");
    }
    return out;
}

double percent_of(double d) {
    return std::expm1(d) * 100.0;
}

struct Column {
    const char* name;
    const char* colour;
    double x;
    const std::vector<double>* values;  // d of each replicate
    const Interval* interval;
};

std::string column_marks(const Column& column, const Axis& axis) {
    std::string out;
    const std::string fill = std::string("fill=\"") + column.colour + "\" fill-opacity=\"0.6\"";
    const double step = 60.0 / static_cast<double>(std::max<std::size_t>(column.values->size(), 1));
    double x = column.x - 60.0;
    for (const double d : *column.values) {
        x += step;
        out += dot_at(x, axis.at(percent_of(d)), 3.5, fill);
    }
    const std::string stroke = std::string("stroke=\"") + column.colour + "\" stroke-width=\"2.5\"";
    const double at = column.x + 24.0;
    const double lo = axis.at(percent_of(column.interval->lo));
    const double hi = axis.at(percent_of(column.interval->hi));
    out += line_at(at, lo, at, hi, stroke) + line_at(at - 6.0, lo, at + 6.0, lo, stroke) + line_at(at - 6.0, hi, at + 6.0, hi, stroke);
    out += dot_at(at, axis.at(percent_of(column.interval->d)), 5.0, std::string("fill=\"") + column.colour + "\"");
    out += text_at(column.x, axis.bottom + 20.0, column.name, "text-anchor=\"middle\" font-weight=\"bold\"");
    out += text_at(column.x, axis.bottom + 36.0, confidence_text(column.interval->confidence) + " interval", "text-anchor=\"middle\"");
    return out;
}

std::string replicate_panel(const Verdict& verdict, double left, double right, double top, double bottom) {
    const Estimate& estimate = verdict.estimate;
    const double width = right - left;
    const Column columns[] = {
        {"base / control", control_colour, left + width * 0.28, &estimate.replicate_control_d, &estimate.control},
        {"base / candidate", candidate_colour, left + width * 0.76, &estimate.replicate_d, &estimate.candidate},
    };
    std::vector<double> shown{percent_of(-verdict.delta), percent_of(verdict.delta)};
    for (const Column& column : columns) {
        for (const double d : *column.values) shown.push_back(percent_of(d));
        shown.push_back(percent_of(column.interval->lo));
        shown.push_back(percent_of(column.interval->hi));
    }
    const Axis axis = axis_over(shown, top, bottom);
    const double band_top = axis.at(percent_of(verdict.delta));
    const double band_bottom = axis.at(percent_of(-verdict.delta));
    std::string out = "<rect x=\"" + number(left) + "\" y=\"" + number(band_top) + "\" width=\"" + number(width) + "\" height=\"" +
                      number(band_bottom - band_top) + "\" fill=\"#009e73\" fill-opacity=\"0.13\"/>\n";
    out += ticks(axis, left, right);
    out += line_at(left, axis.at(0.0), right, axis.at(0.0), "stroke=\"#000000\"");
    for (const Column& column : columns) out += column_marks(column, axis);
    out += text_at(left, top - 12.0, "Ratio - 1 in % by replicate; band: margin, " + percent_text(verdict.margin * 100.0));
    return out;
}

std::string round_panel(const std::vector<Window>& windows, double left, double right, double top, double bottom) {
    std::vector<double> times;
    for (const Window& window : windows) times.push_back(window.ms_per_token());
    std::string out = text_at(left, top - 12.0, "ms per token of every window in order; dashes: next replicate");
    if (times.empty()) return out + text_at(left, top + 20.0, "no round is finished");
    // A rare stall would press all else into one line: the axis ends at the 99th percentile, what lies above sits on its edge.
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    sorted.resize(std::max<std::size_t>(1, (sorted.size() * 99 + 99) / 100));
    const Axis axis = axis_over(sorted, top, bottom);
    out += ticks(axis, left, right);
    const double step = (right - left) / static_cast<double>(windows.size());
    int replicate = windows.front().replicate;
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const double x = left + (static_cast<double>(i) + 0.5) * step;
        if (windows[i].replicate != replicate) {
            out += line_at(x - 0.5 * step, top, x - 0.5 * step, bottom, "stroke=\"#bbbbbb\" stroke-dasharray=\"2 3\"");
            replicate = windows[i].replicate;
        }
        out += dot_at(x, axis.at(std::min(times[i], axis.high)), 1.6, std::string("fill=\"") + colour_of(windows[i].arm) + "\"");
    }
    double x = left;
    for (const ArmRole role : {ArmRole::base, ArmRole::control, ArmRole::candidate}) {
        out += dot_at(x + 5.0, bottom + 16.0, 5.0, std::string("fill=\"") + colour_of(role) + "\"");
        out += text_at(x + 15.0, bottom + 20.0, std::string(name_of(role)));
        x += 90.0;
    }
    return out;
}

std::string headline(const Session& session) {
    if (!session.verdict) return "no verdict: the session is " + std::string(name_of(session.state));
    const Interval& candidate = session.verdict->estimate.candidate;
    return std::string(name_of(session.verdict->kind)) + "   ratio " + interval_text(candidate) + "   (base / candidate, " +
           confidence_text(candidate.confidence) + " over " + count_text(candidate.replicates, "replicate") + ")";
}

}  // namespace

std::string session_svg(const Session& session) {
    constexpr double top = 130.0;
    constexpr double bottom = 520.0;
    std::string out =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 640\" width=\"960\" height=\"640\" role=\"img\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"#000000\">\n<title>" +
        escaped("kestrel-ab session " + session.uuid + ": " + headline(session)) +
        "</title>\n<rect width=\"960\" height=\"640\" fill=\"#ffffff\"/>\n";
    out += text_at(20.0, 34.0, session.plan.experiment + ": " + headline(session), "font-size=\"15\" font-weight=\"bold\"");
    std::string place = "no difference between the arms";
    if (session.place.kind != PlaceKind::none) {
        place = std::string(name_of(session.place.kind)) + " " + session.place.name + ": " + session.place.base + " -> " +
                session.place.candidate;
    }
    out +=
        text_at(20.0, 58.0, place + "; model " + session.workload.model_name + ", position " + std::to_string(session.workload.position));
    out += text_at(20.0, 78.0, session.device + "; " + session.started_at + "; session " + session.uuid);
    const bool has_intervals = session.verdict && session.verdict->estimate.candidate.replicates >= 2;
    if (has_intervals) out += replicate_panel(*session.verdict, 70.0, 430.0, top, bottom);
    std::vector<Window> measured = session.windows;
    std::stable_sort(measured.begin(), measured.end(), [](const Window& a, const Window& b) {
        return std::tie(a.replicate, a.super_round, a.round, a.slot) < std::tie(b.replicate, b.super_round, b.round, b.slot);
    });
    out += round_panel(measured, has_intervals ? 500.0 : 70.0, 940.0, top, bottom);
    out += text_at(20.0, 600.0, "base " + session.arms[index_of(ArmRole::base)].artifact_sha256);
    out += text_at(20.0, 618.0, "candidate " + session.arms[index_of(ArmRole::candidate)].artifact_sha256);
    return out + "</svg>\n";
}

}  // namespace kestrel
