#include "runner/plan/plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "runner/plan/random.hpp"
#include "runner/plan/schedule.hpp"
#include "runner/record/error.hpp"
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"

using namespace kestrel;

namespace {

SuperRound sequence_of(const char* letters) {
    SuperRound sequence{};
    for (std::size_t i = 0; i < sequence.size(); ++i) sequence[i] = static_cast<ArmRole>(letters[i] - 'A');
    return sequence;
}

PlanRequest request_with(std::uint64_t seed, int replicates = 12, int super_rounds = 4) {
    PlanRequest request;
    request.seed = seed;
    request.replicates = replicates;
    request.super_rounds = super_rounds;
    return request;
}

std::string refusal(const PlanRequest& request) {
    try {
        (void)make_plan(request);
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::usage);
        return error.what();
    }
    return "";
}

// The effect of "measured right after arm x" on arm y, summed over a super-round: cancels if it is the same for all y.
std::map<std::pair<ArmRole, ArmRole>, int> neighbour_counts(const SuperRound& sequence) {
    std::map<std::pair<ArmRole, ArmRole>, int> counts;
    ArmRole before = lead_in_arm(sequence);
    for (const ArmRole arm : sequence) {
        ++counts[{before, arm}];
        before = arm;
    }
    return counts;
}

}  // namespace

TEST_CASE("Random: is splitmix64, whose first values from state 1234567 are known") {
    Random random(1234567);
    CHECK(random.next() == 6457827717110365317U);
    CHECK(random.next() == 3203168211198807973U);
    CHECK(random.next() == 9817491932198370423U);
    CHECK(random.next() == 4593380528125082431U);
    CHECK(random.next() == 16408922859458223821U);
}

TEST_CASE("Random: below is in range and about uniform") {
    Random random(7, RandomPurpose::tokens);
    std::array<int, 18> counts{};
    for (int i = 0; i < 18000; ++i) ++counts.at(random.below(18));
    for (const int count : counts) {
        CHECK(count > 850);  // 1000 +- 31 expected
        CHECK(count < 1150);
    }
    CHECK(random.below(1) == 0);
    CHECK_THROWS_AS(random.below(0), std::invalid_argument);
}

TEST_CASE("Random: purposes and indices have separate streams") {
    std::set<std::uint64_t> firsts;
    for (std::uint64_t purpose = 1; purpose <= 4; ++purpose) {
        for (std::uint64_t index = 0; index < 50; ++index) firsts.insert(Random(3, static_cast<RandomPurpose>(purpose), index).next());
    }
    CHECK(firsts.size() == 200);
}

TEST_CASE("super-round orders: 18 of the 720, each balanced") {
    const std::vector<SuperRound>& orders = super_round_orders();
    REQUIRE(orders.size() == 18);
    CHECK(std::set<SuperRound>(orders.begin(), orders.end()).size() == 18);
    CHECK(std::find(orders.begin(), orders.end(), sequence_of("ABCCABBACCBAACBBCA")) != orders.end());
    for (const SuperRound& sequence : orders) {
        std::set<ArmOrder> rounds;
        std::array<std::size_t, 3> position_sum{};
        for (std::size_t i = 0; i < sequence.size(); ++i) position_sum.at(index_of(sequence[i])) += i;
        for (std::size_t r = 0; r < 6; ++r) rounds.insert({sequence[3 * r], sequence[3 * r + 1], sequence[3 * r + 2]});
        CHECK(rounds.size() == 6);
        CHECK(position_sum == std::array<std::size_t, 3>{51, 51, 51});
        const auto counts = neighbour_counts(sequence);
        CHECK(counts.size() == 9);
        for (const auto& [pair, count] : counts) CHECK(count == 2);
    }
}

TEST_CASE("super-round orders: the set treats the arms alike") {
    const std::vector<SuperRound>& orders = super_round_orders();
    const std::set<SuperRound> all(orders.begin(), orders.end());
    for (const ArmOrder& relabelling : arm_orders()) {
        for (SuperRound sequence : orders) {
            for (ArmRole& arm : sequence) arm = relabelling.at(index_of(arm));
            CHECK(all.contains(sequence));
        }
    }
}

TEST_CASE("is_balanced: refuses what only looks balanced") {
    CHECK(is_balanced(sequence_of("ABCCABBACCBAACBBCA")));
    CHECK_FALSE(is_balanced(sequence_of("ABCABCABCABCABCABC")));  // positions differ
    CHECK_FALSE(is_balanced(sequence_of("ABCACBBACBCACABCBA")));  // all six rounds, neighbours not twice each
    CHECK_FALSE(is_balanced(sequence_of("AAAAAABBBBBBCCCCCC")));
}

TEST_CASE("make_plan: has the shape it promises") {
    const Plan plan = make_plan(request_with(42, 12, 5));
    CHECK(plan.sha256.empty());
    CHECK(plan.seed == 42);
    REQUIRE(plan.load_orders.size() == 12);
    REQUIRE(plan.schedules.size() == 12);
    REQUIRE(plan.paddings.size() == 12);
    const std::vector<SuperRound>& orders = super_round_orders();
    for (const auto& replicate : plan.schedules) {
        REQUIRE(replicate.size() == 5);
        for (const SuperRound& sequence : replicate) CHECK(std::find(orders.begin(), orders.end(), sequence) != orders.end());
    }
    for (const std::int64_t padding : plan.paddings) {
        CHECK(padding % 64 == 0);
        CHECK(padding >= 0);
        CHECK(padding <= 2 * 1024 * 1024);
    }
    CHECK(std::set<std::int64_t>(plan.paddings.begin(), plan.paddings.end()).size() > 6);
}

TEST_CASE("make_plan: every six replicates load the arms in each of the six orders once") {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const Plan plan = make_plan(request_with(seed, 18, 1));
        for (std::ptrdiff_t block = 0; block < 3; ++block) {
            const auto first = plan.load_orders.begin() + 6 * block;
            CHECK(std::set<ArmOrder>(first, first + 6).size() == 6);
        }
    }
    const Plan odd = make_plan(request_with(1, 4, 1));
    CHECK(std::set<ArmOrder>(odd.load_orders.begin(), odd.load_orders.end()).size() == 4);
}

TEST_CASE("make_plan: the same seed gives the same plan, another seed another") {
    std::set<std::string> plans;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        const Plan plan = make_plan(request_with(seed));
        Plan again = make_plan(request_with(seed));
        CHECK(canonical_json(plan) == canonical_json(again));
        again.seed = 0;  // so that the seed alone cannot make them differ
        plans.insert(canonical_json(again));
    }
    CHECK(plans.size() == 100);
}

TEST_CASE("make_plan: asking for more leaves what was there") {
    const Plan small = make_plan(request_with(9, 6, 2));
    const Plan large = make_plan(request_with(9, 12, 4));
    for (std::size_t replicate = 0; replicate < 6; ++replicate) {
        CHECK(large.load_orders[replicate] == small.load_orders[replicate]);
        CHECK(large.paddings[replicate] == small.paddings[replicate]);
        for (std::size_t i = 0; i < 2; ++i) CHECK(large.schedules[replicate][i] == small.schedules[replicate][i]);
    }
}

TEST_CASE("make_plan: every one of the 18 orders is used") {
    const Plan plan = make_plan(request_with(5, 60, 10));
    std::map<SuperRound, int> uses;
    for (const auto& replicate : plan.schedules) {
        for (const SuperRound& sequence : replicate) ++uses[sequence];
    }
    CHECK(uses.size() == 18);  // 600 draws, 33 expected of each
    for (const auto& [sequence, count] : uses) CHECK(count < 70);
}

TEST_CASE("make_plan: refuses a request that makes no sense, and says what to do") {
    using Change = void (*)(PlanRequest&);
    const std::vector<std::pair<Change, const char*>> cases{
        {[](PlanRequest& r) { r.experiment.clear(); }, "no name"},
        {[](PlanRequest& r) { r.experiment_version = 0; }, "experiment version"},
        {[](PlanRequest& r) { r.replicates = 0; }, "replicates"},
        {[](PlanRequest& r) { r.replicates = 601; }, "replicates"},
        {[](PlanRequest& r) { r.super_rounds = 0; }, "super-rounds"},
        {[](PlanRequest& r) { r.tokens = 0; }, "timed tokens"},
        {[](PlanRequest& r) { r.position = -1; }, "position"},
        {[](PlanRequest& r) { r.threads = -1; }, "threads"},
        {[](PlanRequest& r) { r.margin = 0.0; }, "margin"},
        {[](PlanRequest& r) { r.margin = 0.51; }, "margin"},
        {[](PlanRequest& r) { r.margin = std::nan(""); }, "margin"},
        {[](PlanRequest& r) { r.confidence = 1.0; }, "confidence"},
        {[](PlanRequest& r) { r.control_confidence = 0.1; }, "control's confidence"},
        {[](PlanRequest& r) { r.output_rule = "close enough"; }, "output rule"},
        {[](PlanRequest& r) { r.output_rule = "tolerance:"; }, "output rule"},
        {[](PlanRequest& r) { r.output_rule = "tolerance:1e-5x"; }, "output rule"},
        {[](PlanRequest& r) { r.output_rule = "tolerance:-1"; }, "output rule"},
    };
    for (const auto& [change, words] : cases) {
        PlanRequest request = request_with(1);
        change(request);
        CHECK_THAT(refusal(request), Catch::Contains(words));
    }
    PlanRequest tolerant = request_with(1);
    tolerant.output_rule = "tolerance:1e-5";
    CHECK(refusal(tolerant).empty());
}

TEST_CASE("teacher_tokens: in the vocabulary, from the seed, and a prefix of a longer sequence") {
    const std::vector<std::int32_t> tokens = teacher_tokens(11, 400, 50);
    REQUIRE(tokens.size() == 400);
    CHECK(*std::min_element(tokens.begin(), tokens.end()) == 0);
    CHECK(*std::max_element(tokens.begin(), tokens.end()) == 49);
    CHECK(tokens == teacher_tokens(11, 400, 50));
    CHECK(tokens != teacher_tokens(12, 400, 50));
    const std::vector<std::int32_t> prefix = teacher_tokens(11, 17, 50);
    CHECK(std::equal(prefix.begin(), prefix.end(), tokens.begin()));
    CHECK_THROWS_AS(teacher_tokens(1, 0, 50), Error);
    CHECK_THROWS_AS(teacher_tokens(1, 5, 0), Error);
}
