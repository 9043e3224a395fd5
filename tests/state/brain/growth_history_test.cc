#include "thalia/state/metadata.h"

#include <limits>
#include <string>

#include "boost_test.h"
#include "support/errors.h"
#include "support/sanitizers.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(growth_history)

namespace {

std::string metadata_with(const std::string& history) {
  return R"({"growth_history":)" + history + "}";
}

GrowthEvent only_event(const std::string& event) {
  const auto events = parse_growth_history(metadata_with("[" + event + "]"));
  BOOST_REQUIRE(events.size() == 1u);
  return events[0];
}

std::string rewritten(const std::string& event) {
  return growth_event_json(only_event(event));
}

// The source specification's example of a growth and of a pruning, "Metadata Section".
constexpr const char* kGrowth =
    R"({"step":10000,"region":"cortex_l4","neurons_added":100,"reason":"high_utilization","type":"growth"})";
constexpr const char* kPruning =
    R"({"step":45000,"region":"striatum","synapses_pruned":234,"reason":"consolidation","type":"pruning","safety_level":"conservative","importance_threshold":0.001})";
// As the original program's brain wrote it into checkpoints of its version 0.2.0.
constexpr const char* kBrainEvent =
    R"({"timestamp": "2025-12-08T12:00:00", "region": "striatum", "neurons_added": 8, "old_size": 320, "new_size": 328, "reason": "manual_test"})";
// The fields of the original program's GrowthEvent.
constexpr const char* kComponentEvent =
    R"({"timestamp":"2025-12-08T12:00:00","component_name":"cortex","component_type":"region","event_type":"add_neurons","n_neurons_added":20,"n_synapses_added":640,"reason":"saturation","metrics_before":{"utilization":0.9},"metrics_after":{"utilization":0.5,"n":[1]}})";

}  // namespace

BOOST_AUTO_TEST_CASE(events_of_the_specification_come_back_as_they_were) {
  const GrowthEvent growth = only_event(kGrowth);
  BOOST_TEST(growth.type == "growth");
  BOOST_TEST(growth.step.value() == 10000u);
  BOOST_TEST(growth.region == "cortex_l4");
  BOOST_TEST(growth.neurons_added.value() == 100);
  BOOST_TEST(growth.reason == "high_utilization");
  BOOST_TEST(growth.other.empty());
  BOOST_TEST(!is_pruning(growth));
  BOOST_TEST(growth_event_json(growth) == kGrowth);

  const GrowthEvent pruning = only_event(kPruning);
  BOOST_TEST(pruning.type == "pruning");
  BOOST_TEST(!pruning.neurons_added.has_value());
  BOOST_TEST(pruning.synapses_pruned.value() == 234u);
  BOOST_TEST(pruning.safety_level == "conservative");
  BOOST_TEST(pruning.importance_threshold.value() == 0.001);
  BOOST_TEST(pruning.other.empty());
  BOOST_TEST(is_pruning(pruning));
  BOOST_TEST(neuron_change(pruning) == 0);
  BOOST_TEST(growth_event_json(pruning) == kPruning);
}

BOOST_AUTO_TEST_CASE(events_of_a_brain_are_read_and_written_in_the_specified_shape) {
  const GrowthEvent event = only_event(kBrainEvent);
  BOOST_TEST(event.timestamp == "2025-12-08T12:00:00");
  BOOST_TEST(event.region == "striatum");
  BOOST_TEST(event.old_size.value() == 320u);
  BOOST_TEST(event.new_size.value() == 328u);
  BOOST_TEST(neuron_change(event) == 8);
  BOOST_TEST(event.other.empty());
  BOOST_TEST(
      growth_event_json(event) ==
      R"({"region":"striatum","neurons_added":8,"reason":"manual_test","type":"growth","old_size":320,"new_size":328,"timestamp":"2025-12-08T12:00:00"})");
}

BOOST_AUTO_TEST_CASE(events_of_components_are_read_and_written_in_the_specified_shape) {
  const GrowthEvent event = only_event(kComponentEvent);
  BOOST_TEST(event.region == "cortex");
  BOOST_TEST(event.component_type == "region");
  BOOST_TEST(event.event_type == "add_neurons");
  BOOST_TEST(event.neurons_added.value() == 20);
  BOOST_TEST(event.synapses_added.value() == 640);
  BOOST_TEST(event.metrics_before_json == R"({"utilization":0.9})");
  BOOST_TEST(event.metrics_after_json == R"({"utilization":0.5,"n":[1]})");
  BOOST_TEST(event.other.empty());
  BOOST_TEST(
      growth_event_json(event) ==
      R"({"region":"cortex","neurons_added":20,"reason":"saturation","type":"growth","synapses_added":640,"timestamp":"2025-12-08T12:00:00","component_type":"region","event_type":"add_neurons","metrics_before":{"utilization":0.9},"metrics_after":{"utilization":0.5,"n":[1]}})");
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read_as_the_same_event) {
  for (const char* text : {kGrowth, kPruning, kBrainEvent, kComponentEvent}) {
    const GrowthEvent event = only_event(text);
    BOOST_TEST((only_event(growth_event_json(event)) == event));
  }
}

BOOST_AUTO_TEST_CASE(unknown_members_are_kept_as_they_are) {
  const GrowthEvent event =
      only_event(R"({"stage": 3, "step": 1, "who": {"a" : [1.0, "\u0041"]}})");
  BOOST_TEST(event.other.size() == 2u);
  BOOST_TEST(event.other[1].first == "who");
  BOOST_TEST(growth_event_json(event) ==
             R"({"step":1,"type":"growth","stage":3,"who":{"a":[1.0,"A"]}})");
}

BOOST_AUTO_TEST_CASE(known_members_of_another_kind_are_kept_and_are_no_error) {
  for (const char* member :
       {R"("step":"soon")", R"("step":-1)", R"("step":1.5)", R"("step":18446744073709551616)",
        R"("region":5)", R"("region":"")", R"("reason":null)", R"("neurons_added":[])",
        R"("importance_threshold":1e999)", R"("metrics_before":"none")", R"("type":7)"}) {
    const std::string text = std::string("{") + member + "}";
    const GrowthEvent event = only_event(text);
    BOOST_TEST(event.other.size() == 1u, text);
    BOOST_TEST(growth_event_json(event).find(member) != std::string::npos, text);
    BOOST_TEST((only_event(growth_event_json(event)) == event), text);
  }
}

BOOST_AUTO_TEST_CASE(whole_numbers_are_counts_however_they_are_written) {
  const GrowthEvent event = only_event(R"({"step":1e4,"neurons_added":-3.0,"old_size":12.0})");
  BOOST_TEST(event.step.value() == 10000u);
  BOOST_TEST(event.neurons_added.value() == -3);
  BOOST_TEST(event.old_size.value() == 12u);
  BOOST_TEST(only_event(R"({"step":18446744073709551615})").step.value() == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_CASE(a_misfit_hides_the_same_member_under_its_other_name) {
  const std::string text = R"({"type":"growth","region":5,"component_name":"x"})";
  BOOST_TEST(only_event(text).region.empty());
  BOOST_TEST(rewritten(text) == text);
}

BOOST_AUTO_TEST_CASE(of_members_with_one_key_the_last_counts) {
  BOOST_TEST(only_event(R"({"step":1,"step":2})").step.value() == 2u);
  const auto events = parse_growth_history(R"({"growth_history":[{}],"growth_history":[{},{}]})");
  BOOST_TEST(events.size() == 2u);
}

BOOST_AUTO_TEST_CASE(the_type_is_told_from_the_rest_where_there_is_none) {
  BOOST_TEST(only_event(R"({"synapses_pruned":1})").type == "pruning");
  BOOST_TEST(only_event(R"({"neurons_removed":1})").type == "pruning");
  BOOST_TEST(only_event(R"({"event_type":"prune_synapses"})").type == "pruning");
  BOOST_TEST(only_event(R"({"synapses_pruned":0})").type == "growth");
  BOOST_TEST(only_event(R"({"type":"merge"})").type == "merge");
  BOOST_TEST(!is_pruning(only_event(R"({"type":"merge"})")));
}

BOOST_AUTO_TEST_CASE(the_change_in_neurons_does_not_overflow) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  BOOST_TEST(neuron_change({.neurons_added = 5, .neurons_removed = 7}) == -2);
  BOOST_TEST(neuron_change({.neurons_added = kMin, .neurons_removed = 1}) == kMin);
  BOOST_TEST(neuron_change({.neurons_removed = ~std::uint64_t{0}}) == -kMax);
  BOOST_TEST(neuron_change({.old_size = ~std::uint64_t{0}, .new_size = 0}) == -kMax);
  BOOST_TEST(neuron_change({.old_size = 10, .new_size = 4}) == -6);
  BOOST_TEST(neuron_change({.neurons_added = 1, .old_size = 10, .new_size = 4}) == 1);
  BOOST_TEST(neuron_change({.old_size = 10}) == 0);
}

BOOST_AUTO_TEST_CASE(elements_that_are_no_objects_are_kept) {
  const std::string history = R"([3,null,"x",[{}],)" + std::string(kGrowth) + "]";
  const auto events = parse_growth_history(metadata_with(history));
  BOOST_TEST(events.size() == 5u);
  BOOST_TEST(events[3].not_an_object_json == "[{}]");
  BOOST_TEST(growth_history_json(events) == history);
}

BOOST_AUTO_TEST_CASE(metadata_without_a_history_has_no_events) {
  BOOST_TEST(parse_growth_history("").empty());
  BOOST_TEST(parse_growth_history("{}").empty());
  BOOST_TEST(parse_growth_history(R"({"growth_history":null})").empty());
  BOOST_TEST(parse_growth_history(R"({"a":{"growth_history":[{}]}})").empty());
  BOOST_TEST(growth_history_json({}) == "[]");
}

BOOST_AUTO_TEST_CASE(a_history_that_is_no_array_is_refused) {
  const auto refused = says(ErrorCode::bad_value, "growth_history", "object", "an array");
  BOOST_CHECK_EXCEPTION(parse_growth_history(metadata_with("{}")), FormatError, refused);
  BOOST_CHECK_EXCEPTION(append_growth_event(metadata_with("{}"), {}), FormatError, refused);
}

BOOST_AUTO_TEST_CASE(truncated_texts_are_refused) {
  const std::string text = metadata_with("[" + std::string(kGrowth) + "," + kPruning + "]");
  for (std::size_t length = 1; length < text.size(); ++length) {
    BOOST_CHECK_THROW(parse_growth_history(text.substr(0, length)), FormatError);
    BOOST_CHECK_THROW(append_growth_event(text.substr(0, length), {}), FormatError);
  }
}

BOOST_AUTO_TEST_CASE(limits_are_kept) {
  const auto exceeded = has_code(ErrorCode::limit_exceeded);
  const std::string text = metadata_with("[{}]");
  ReadLimits limits;
  limits.max_json_bytes = text.size();
  BOOST_TEST(parse_growth_history(text, limits).size() == 1u);
  limits.max_json_bytes = text.size() - 1;
  BOOST_CHECK_EXCEPTION(parse_growth_history(text, limits), FormatError, exceeded);
  BOOST_CHECK_EXCEPTION(append_growth_event(text, {}, limits), FormatError, exceeded);
  BOOST_CHECK_EXCEPTION(parse_growth_history(text, {.max_json_depth = 2}), FormatError, exceeded);
}

// Looking through the members written so far for each would take 10^11 steps.
BOOST_AUTO_TEST_CASE(an_event_may_have_as_many_members_as_it_likes) {
  GrowthEvent event{.step = 1, .region = "r"};
  for (int i = 0; i < (kSanitized ? 50'000 : 500'000); ++i)
    event.other.emplace_back(std::to_string(i), "0");
  const auto events = parse_growth_history(metadata_with("[" + growth_event_json(event) + "]"));
  BOOST_TEST_REQUIRE(events.size() == 1u);
  BOOST_TEST(events[0].other.size() == event.other.size());
}

BOOST_AUTO_TEST_CASE(appending_leaves_the_rest_of_the_metadata_alone) {
  const GrowthEvent event{.step = 2, .region = "b", .reason = "r", .neurons_added = 1};
  const std::string written = growth_event_json(event);
  BOOST_TEST(append_growth_event("", event) == metadata_with("[" + written + "]"));
  BOOST_TEST(append_growth_event(R"({"z":1.50, "a":[ {} ]})", event) ==
             R"({"z":1.50,"a":[{}],"growth_history":[)" + written + "]}");
  BOOST_TEST(append_growth_event(R"({"growth_history":null,"a":1})", event) ==
             R"({"growth_history":[)" + written + R"(],"a":1})");
  // Earlier events are not brought into another shape.
  BOOST_TEST(
      append_growth_event(R"({"b":0,"growth_history":[{"n_neurons_added":1.0},7],"a":1})", event) ==
      R"({"b":0,"growth_history":[{"n_neurons_added":1.0},7,)" + written + R"(],"a":1})");
  BOOST_TEST(append_growth_event(R"({"growth_history":5,"growth_history":[]})", event) ==
             R"({"growth_history":5,"growth_history":[)" + written + "]}");
}

BOOST_AUTO_TEST_SUITE_END()

// A million events. Runs if it is named, in the slow suite.
BOOST_AUTO_TEST_SUITE(growth_history_limit, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(as_many_events_as_are_allowed_and_not_one_more) {
  const auto exceeded = has_code(ErrorCode::limit_exceeded);
  const auto metadata_with = [](const std::string& events) {
    return R"({"growth_history":)" + events + "}";
  };
  std::string many = "[0";
  for (std::size_t i = 1; i < kMaxGrowthEvents; ++i) many += ",0";
  BOOST_TEST(parse_growth_history(metadata_with(many + "]")).size() == kMaxGrowthEvents);
  BOOST_CHECK_EXCEPTION(parse_growth_history(metadata_with(many + ",0]")), FormatError, exceeded);
  BOOST_CHECK_EXCEPTION(append_growth_event(metadata_with(many + "]"), {}), FormatError, exceeded);
}

BOOST_AUTO_TEST_SUITE_END()
