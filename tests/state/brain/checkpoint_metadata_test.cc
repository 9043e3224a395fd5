#include "thalia/state/metadata.h"

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(checkpoint_metadata_schema)

BOOST_AUTO_TEST_CASE(an_empty_one_is_written_complete) {
  BOOST_TEST(to_json(to_value({})) ==
             R"({"version":"","thalia_version":"","created":"","description":"","tags":[],)"
             R"("growth_history":[],"training_info":{},"hardware":{},"custom":{}})");
}

// The example of the source specification, without its comment.
BOOST_AUTO_TEST_CASE(the_specifications_example_comes_back) {
  const Value example = parse_json(R"({
    "version": "0.1.0", "thalia_version": "0.2.0", "created": "2025-12-07T14:30:00Z",
    "description": "Language learning experiment, stage 3",
    "tags": ["language", "curriculum", "stage3"],
    "growth_history": [
      {"step": 10000, "region": "cortex_l4", "neurons_added": 100, "reason": "high_utilization",
       "type": "growth"},
      {"step": 45000, "region": "striatum", "synapses_pruned": 234, "reason": "consolidation",
       "type": "pruning", "safety_level": "conservative", "importance_threshold": 0.001}],
    "training_info": {"total_epochs": 150, "best_loss": 0.042, "curriculum_stage": 3,
                      "dataset": "simple_grammar_v2"},
    "hardware": {"device": "cuda:0", "gpu_model": "RTX 4090", "precision": "float32"},
    "custom": {}})");
  const CheckpointMetadata metadata = checkpoint_metadata(example);
  BOOST_TEST(metadata.tags.size() == 3);
  BOOST_REQUIRE(metadata.growth_history.size() == 2);
  BOOST_TEST(*metadata.growth_history[0].neurons_added == 100);
  BOOST_TEST(*metadata.growth_history[1].importance_threshold == 0.001);
  BOOST_TEST(metadata.training_info.at("curriculum_stage").as_int64() == 3);
  BOOST_TEST(metadata.other.size() == 0);
  const Value written = to_value(metadata);
  BOOST_TEST((checkpoint_metadata(written) == metadata));
  for (const auto& [name, value] : example.members()) {
    if (name != "growth_history") BOOST_TEST((written.at(name) == value), name);
  }
}

BOOST_AUTO_TEST_CASE(unknown_members_and_other_kinds_are_kept) {
  const Value odd = parse_json(R"({"stage":3,"tags":"one","custom":[1],"description":"d"})");
  const CheckpointMetadata metadata = checkpoint_metadata(odd);
  BOOST_TEST(metadata.description == "d");
  BOOST_TEST(metadata.other.size() == 3);
  const Value written = to_value(metadata);
  for (const auto& [name, value] : odd.members()) BOOST_TEST((written.at(name) == value), name);
  BOOST_TEST(written.size() == 10);
}

BOOST_AUTO_TEST_CASE(a_member_that_would_be_there_twice_is_refused) {
  CheckpointMetadata metadata;
  metadata.tags = {"a"};
  metadata.other["tags"] = "b";
  expect<UsageError>([&] { to_value(metadata); }, ErrorCode::duplicate);
}

BOOST_AUTO_TEST_CASE(times_are_written_in_utc) {
  BOOST_TEST(iso_time(0) == "1970-01-01T00:00:00Z");
  BOOST_TEST(iso_time(1'765'000'000) == "2025-12-06T05:46:40Z");  // as the vectors' sidecars say
  BOOST_TEST(iso_time(951'782'399) == "2000-02-28T23:59:59Z");
  BOOST_TEST(iso_time(951'782'400) == "2000-02-29T00:00:00Z");
  BOOST_TEST(iso_time(~0ull) == "9999-12-31T23:59:59Z");
}

BOOST_AUTO_TEST_SUITE_END()
