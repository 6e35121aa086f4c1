// The figures that were published for the two optimisations, against the raw rounds they came from.
#include "runner/stats/published.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "runner/record/error.hpp"
#include "runner/stats/summary.hpp"

using namespace kestrel;

namespace {

RoundTable read_table(const std::string& name) {
    const std::string path = std::string(KESTREL_TEST_DIR) + "/data/published/" + name;
    std::ifstream file(path);
    INFO(path);
    REQUIRE(file.good());
    std::ostringstream text;
    text << file.rdbuf();
    return parse_round_table(text.str());
}

const std::vector<double>& column(const RoundTable& table, const char* name) {
    return table.values[column_index(table, name)];
}

// The figures in this file must be the published ones, so each phrase must stand in the table's own comments.
void require_published(const RoundTable& table, const std::vector<std::string>& phrases) {
    for (const std::string& phrase : phrases) CHECK_THAT(table.comments, Catch::Contains(phrase));
}

std::vector<PublishedFigure> fusion_figures(const RoundTable& table) {
    const TwoArmSummary s = two_arm_summary(column(table, "base_ms_per_token"), column(table, "fuse_ms_per_token"));
    std::vector<PublishedFigure> figures{
        {"fusion: mean of base", "16.528", s.base_mean},
        {"fusion: mean of fused", "15.875", s.other_mean},
        {"fusion: ratio", "1.0411", s.ratio},
        {"fusion: saved ms", "0.653", s.saved_ms},
        {"fusion: spread of base", "1.14", s.base_spread_percent},
        {"fusion: spread of fused", "0.56", s.other_spread_percent},
    };
    const std::vector<std::string>& printed = table.text[column_index(table, "published_ratio")];
    for (std::size_t i = 0; i < printed.size(); ++i) {
        figures.push_back({"fusion: ratio of round " + std::to_string(i + 1), printed[i], s.round_ratios[i]});
    }
    return figures;
}

std::vector<PublishedFigure> register_figures(const RoundTable& table) {
    const TwoArmSummary s = two_arm_summary(column(table, "ref_ms_per_token"), column(table, "register_ms_per_token"));
    return {
        {"register: mean of ref", "18.83", s.base_mean},
        {"register: mean of register", "16.41", s.other_mean},
        {"register: ratio", "1.148", s.ratio},
        {"register: difference", "-2.423", -s.saved_ms},
        {"register: percent", "-12.9", -s.saved_percent},
        {"register: spread of ref", "0.05", s.base_spread_percent},
        {"register: spread of register", "0.6", s.other_spread_percent},
    };
}

std::vector<PublishedFigure> rerun_figures() {
    const TwoArmSummary s = two_arm_summary(std::vector<double>{18.829, 18.821, 18.844}, std::vector<double>{16.432, 16.465, 16.473});
    return {
        {"rerun: difference", "2.374", s.saved_ms},
        {"rerun: ratio", "1.144", s.ratio},
    };
}

}  // namespace

TEST_CASE("published figures: the fusion's rounds support all but the spread of the base arm") {
    const RoundTable table = read_table("e2e-fusion-rounds.csv");
    require_published(table, {"mean 16.528 vs 15.875", "ratio 1.0411", "saved 0.653 ms/token", "spread 1.14% vs 0.56%"});
    const std::vector<PublishedFigure> figures = fusion_figures(table);
    REQUIRE(figures.size() == 12);
    CHECK(unsupported(figures) == std::vector<std::string>{"fusion: spread of base"});
    CHECK(rounded_like("1.14", figures[4].computed) == "1.13");
}

TEST_CASE("published figures: the register cut's rounds support every one") {
    const RoundTable table = read_table("e2e-register-rounds.csv");
    require_published(table, {"18.83 -> 16.41", "ratio 1.148", "difference -2.423 ms/token (-12.9%)", "spread 0.05% vs 0.6%"});
    CHECK(unsupported(register_figures(table)).empty());
}

TEST_CASE("published figures: the independent rerun supports its ratio, not the last digit of its difference") {
    const RoundTable table = read_table("e2e-register-rounds.csv");
    require_published(table, {"ref 18.829/18.821/18.844", "default 16.432/16.465/16.473", "difference 2.374 ms", "ratio 1.144"});
    const std::vector<PublishedFigure> figures = rerun_figures();
    CHECK(unsupported(figures) == std::vector<std::string>{"rerun: difference"});
    CHECK(rounded_like("2.374", figures[0].computed) == "2.375");
}

TEST_CASE("published figures: the check notices a wrong digit in any figure, and a wrong round") {
    const RoundTable fusion = read_table("e2e-fusion-rounds.csv");
    std::vector<PublishedFigure> figures = fusion_figures(fusion);
    const std::vector<PublishedFigure> others = register_figures(read_table("e2e-register-rounds.csv"));
    figures.insert(figures.end(), others.begin(), others.end());
    for (PublishedFigure figure : figures) {
        if (!is_supported(figure)) continue;
        INFO(figure.name);
        figure.printed.back() = figure.printed.back() == '9' ? '8' : static_cast<char>(figure.printed.back() + 1);
        CHECK_FALSE(is_supported(figure));
    }
    RoundTable changed = fusion;
    changed.values[column_index(changed, "fuse_ms_per_token")][2] += 0.01;
    CHECK(unsupported(fusion_figures(changed)).size() > 3);
    // The other way: rounds that do support 1.14 % are not accused.
    changed = fusion;
    changed.values[column_index(changed, "base_ms_per_token")][5] = 16.444 * 1.0114;
    CHECK(is_supported(fusion_figures(changed)[4]));
}

TEST_CASE("rounded_like: as many decimals as printed") {
    CHECK(rounded_like("1.14", 1.13111) == "1.13");
    CHECK(rounded_like("0.6", 0.6359) == "0.6");
    CHECK(rounded_like("12", 12.6) == "13");
    CHECK(rounded_like("-2.423", -2.42267) == "-2.423");
}

TEST_CASE("parse_round_table: damage is refused with its line") {
    const auto message = [](const char* text) {
        try {
            (void)parse_round_table(text);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK_THAT(message("a,b\n1,2\n3\n"), Catch::Contains("Line 3"));
    CHECK_THAT(message("# c\na,b\n1,x\n"), Catch::Contains("'x'"));
    CHECK_THAT(message("a,b\n1,\n"), Catch::Contains("Line 2"));
    CHECK_THAT(message("a,b\n"), Catch::Contains("no rounds"));
    CHECK_THAT(message(""), Catch::Contains("no rounds"));
    CHECK(message("a,b\r\n1,2\r\n").empty());
    CHECK_THROWS_AS(column_index(parse_round_table("a,b\n1,2\n"), "c"), Error);
}
