// Records as JSON: spelling, round trip, and refusal of what is not a record.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "runner/record/json.hpp"

using namespace kestrel;

TEST_CASE("the canonical plan is sorted, dense and without its own hash", "[store][json]") {
    Plan plan;
    plan.sha256 = "not part of it";
    plan.experiment = std::string("x");
    plan.seed = 18446744073709551615u;
    plan.load_orders = {{ArmRole::candidate, ArmRole::base, ArmRole::control}};
    const std::string text = canonical_json(plan);
    CHECK(text == R"({"confidence":0.95,"control_confidence":0.99,"experiment":"x","experiment_version":1,)"
                  R"("load_orders":[["candidate","base","control"]],"margin":0.01,"output_rule":"bit-identical","paddings":[],)"
                  R"("position":0,"replicates":6,"schedules":[],"seed":"18446744073709551615","super_rounds":4,"threads":0,"tokens":16})");
    auto j = parse_json(text);
    j["sha256"] = "y";
    CHECK(canonical_json(j.get<Plan>()) == text);
}

TEST_CASE("numbers that JSON lacks and bytes that are not text survive", "[store][json]") {
    Interval interval;
    interval.d = std::numeric_limits<double>::quiet_NaN();
    interval.lo = -std::numeric_limits<double>::infinity();
    interval.hi = std::numeric_limits<double>::denorm_min();
    const auto back = parse_json(dump_json(nlohmann::json(interval))).get<Interval>();
    CHECK(std::isnan(back.d));
    CHECK(back.lo == interval.lo);
    CHECK(back.hi == interval.hi);
    Event event;
    event.detail = "\xff\xfe";
    CHECK(parse_json(dump_json(nlohmann::json(event))).get<Event>().detail == "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("what is not a record is refused with the field's name", "[store][json]") {
    const nlohmann::json good = Window{};
    REQUIRE_NOTHROW(good.get<Window>());
    const auto with = [&](const char* field, const nlohmann::json& value) {
        nlohmann::json j = good;
        j[field] = value;
        return j;
    };
    CHECK_THROWS_WITH(with("round", 1.5).get<Window>(), Catch::Contains("round: expected an integer"));
    CHECK_THROWS_WITH(with("round", 2147483648).get<Window>(), Catch::Contains("round: expected a 32-bit integer"));
    CHECK_THROWS_WITH(with("window_ns", 9223372036854775808u).get<Window>(), Catch::Contains("window_ns"));
    CHECK_THROWS_WITH(with("arm", "Base").get<Window>(), Catch::Contains("not a arm") || Catch::Contains("arm: "));
    CHECK_THROWS_WITH(with("arm", 0).get<Window>(), Catch::Contains("arm: "));
    CHECK_THROWS_WITH(with("token_ns", {1, "2"}).get<Window>(), Catch::Contains("token_ns: "));
    CHECK_THROWS_WITH(with("output_digest", nullptr).get<Window>(), Catch::Contains("output_digest: "));
    nlohmann::json missing = good;
    missing.erase("slot");
    CHECK_THROWS_WITH(missing.get<Window>(), Catch::Contains("'slot' is missing"));
    CHECK_THROWS_AS(nlohmann::json::array().get<Window>(), std::invalid_argument);
    CHECK_THROWS_AS(parse_json("{\"a\":"), std::invalid_argument);
    CHECK_THROWS_AS(parse_json("1e999"), std::invalid_argument);
    nlohmann::json replicate = Replicate{};
    replicate["load_order"] = {"base", "control"};
    CHECK_THROWS_WITH(replicate.get<Replicate>(), Catch::Contains("load_order: expected an array of 3"));
    nlohmann::json reading = Reading{};
    reading["sources"] = {{"cpu", {{"steal_s", "1"}}}};
    CHECK_THROWS_WITH(reading.get<Reading>(), Catch::Contains("sources: expected a number"));
    nlohmann::json plan = Plan{};
    for (const char* seed : {"", "-1", "18446744073709551616", "1x", " 1"}) {
        plan["seed"] = seed;
        CHECK_THROWS_WITH(plan.get<Plan>(), Catch::Contains("seed: "));
    }
}
