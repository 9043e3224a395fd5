#include "thalia/state/growth.h"

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "boost_test.h"
#include "growth_sample.h"
#include "support/errors.h"
#include "thalia/state/metadata.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(pruning)

namespace {

Tensor floats(const Shape& shape, std::vector<float> values) {
  return Tensor::copy_of<float>(shape, values);
}

// The state of a brain whose task has not changed for long.
void say_unchanged(BrainState& brain) {
  brain.state["task_change"]["active"] = false;
  brain.state["task_change"]["step"] = 0;
}

// Weights of [2, 4]: 0.5 is strong, 0 is not a synapse, the others are weak. Among the weak ones
// (1, 2, 4, 5, 6) number 2 is young, and 5 important.
BrainState weak_brain() {
  BrainState brain;
  brain.training_steps = 200'000;
  say_unchanged(brain);
  BrainRegion& region = brain.regions.add("r", {.n_neurons = 2, .n_inputs = 4});
  region.weights()["w"] =
      floats({2, 4}, {0.5F, 0.005F, -0.001F, 0, 0.009F, -0.009F, 0.0099F, 0.0101F});
  region.learning_state()["synapse_age"]["w"] =
      floats({2, 4}, {1e6F, 1e6F, 9999, 1e6F, 10'000, 1e6F, 1e6F, 1e6F});
  region.learning_state()["synapse_importance"]["w"] =
      floats({2, 4}, {0, 0, 0, 0, 0.0009F, 0.5F, 0, 0});
  region.learning_state()["importance_window_steps"] = 50'000;
  return brain;
}

// What is said where nothing was removed, and nothing was.
std::vector<std::string> spared_by(BrainState brain, const PruneOptions& options = {}) {
  const BrainState before = brain;
  const PruneResult result = prune_synapses(brain, "r", options);
  BOOST_TEST(result.synapses_removed == 0);
  BOOST_TEST(result.regions_affected.empty());
  BOOST_TEST((brain == before));
  return result.spared;
}

void check_spared(const BrainState& brain, const char* reason, const PruneOptions& options = {}) {
  const auto spared = spared_by(brain, options);
  BOOST_REQUIRE(spared.size() == 1);
  BOOST_TEST(spared[0].find(reason) != std::string::npos, spared[0]);
}

// All but the history.
void check_same_state(const BrainState& a, const BrainState& b) {
  BOOST_TEST((a.regions == b.regions));
  BOOST_TEST((a.pathways == b.pathways));
  BOOST_TEST((a.connectivity == b.connectivity));
  BOOST_TEST((a.state == b.state));
}

// Five neurons: 0 has a strong weight in, 1 a strong weight out, 3 fires. 2 and 4 are silent.
BrainState silent_brain() {
  BrainState brain;
  brain.training_steps = 500'000;
  say_unchanged(brain);
  BrainRegion& region = brain.regions.add("r", {.n_neurons = 5, .n_inputs = 2});
  region.config()["n_neurons"] = 5;
  std::vector<float> in(10, 0.01F);
  in[0] = 0.5F;
  region.weights()["w_in"] = floats({5, 2}, in);
  std::vector<float> recurrent(25, 0.02F);
  recurrent[2 * 5 + 1] = -0.3F;
  region.weights()["w_rec"] = floats({5, 5}, recurrent).to_csr();
  region.region_state()["membrane"] = floats({5}, {1, 2, 3, 4, 5});
  region.learning_state()["silent_steps"] =
      floats({5}, {200'000, 200'000, 150'000, 100'000, 300'000});
  BrainRegion& target = brain.regions.add("target", {.n_neurons = 3, .n_inputs = 5});
  target.weights()["r"] = floats({3, 5}, std::vector<float>(15, 0.03F));
  brain.connectivity.add(
      {"r", "target", floats({5, 3}, std::vector<float>(15, 0.04F)), counting(DType::u16, {5, 3})});
  return brain;
}

}  // namespace

BOOST_AUTO_TEST_CASE(synapses_that_are_weak_old_and_unimportant_go) {
  for (const bool is_sparse : {false, true}) {
    BrainState brain = weak_brain();
    Value& weights = brain.regions.at("r").weights()["w"];
    if (is_sparse) weights = weights.as_tensor().to_csr();
    const PruneResult result = prune_synapses(brain, "r");
    BOOST_TEST(result.synapses_removed == 3);
    BOOST_TEST(result.neurons_removed == 0);
    BOOST_TEST(result.regions_affected == (std::vector<std::string>{"r"}),
               boost::test_tools::per_element());
    BOOST_REQUIRE(result.tensors.size() == 1);
    BOOST_TEST(result.tensors[0].path == "weights.w");
    BOOST_TEST(result.tensors[0].removed == 3);
    const Tensor& pruned = tensor_at(brain.regions.at("r"), "weights.w");
    BOOST_TEST(
        (pruned.to_dense() == floats({2, 4}, {0.5F, 0, -0.001F, 0, 0, -0.009F, 0, 0.0101F})));
    if (is_sparse) BOOST_TEST(pruned.nnz() == 4);
    const GrowthEvent event = parse_growth_history(to_json(brain.metadata)).front();
    BOOST_TEST(is_pruning(event));
    BOOST_TEST(*event.synapses_pruned == 3);
    BOOST_TEST(event.safety_level == "conservative");
    BOOST_TEST(*event.importance_threshold == 0.001);
    BOOST_TEST(event.reason == "consolidation");
  }
}

BOOST_AUTO_TEST_CASE(a_pruning_is_undone_bit_for_bit) {
  for (const Encoding encoding : {Encoding::dense, Encoding::csr, Encoding::coo}) {
    BrainState brain = weak_brain();
    Value& weights = brain.regions.at("r").weights()["w"];
    if (encoding == Encoding::csr) weights = weights.as_tensor().to_csr();
    if (encoding == Encoding::coo) weights = weights.as_tensor().to_coo();
    const BrainState before = brain;
    const PruneResult result = prune_synapses(brain, "r");
    BOOST_TEST(!(brain.regions == before.regions));
    undo_pruning(brain, result.log);
    check_same_state(brain, before);
    const auto events = parse_growth_history(to_json(brain.metadata));
    BOOST_REQUIRE(events.size() == 2);
    BOOST_TEST(*events[1].synapses_added == 3);
  }
}

BOOST_AUTO_TEST_CASE(undoing_keeps_what_was_learned_since) {
  BrainState brain = weak_brain();
  const PruneResult result = prune_synapses(brain, "r");
  brain.regions.at("r").find_path("weights.w")->as_tensor().mutable_as<float>()[0] = 0.75F;
  undo_pruning(brain, result.log);
  BOOST_TEST((tensor_at(brain.regions.at("r"), "weights.w") ==
              floats({2, 4}, {0.75F, 0.005F, -0.001F, 0, 0.009F, -0.009F, 0.0099F, 0.0101F})));
}

BOOST_AUTO_TEST_CASE(of_a_place_that_a_log_names_twice_the_first_removal_is_undone_last) {
  BrainState brain = weak_brain();
  const BrainState before = brain;
  PruneResult result = prune_synapses(brain, "r");
  // As if the places had been pruned once more, when they held 0 already.
  Value again = result.log.at("tensors").elements()[0];
  again["values"] = floats({3}, {0, 0, 0});
  result.log["tensors"].push_back(again);
  undo_pruning(brain, result.log);
  check_same_state(brain, before);
}

BOOST_AUTO_TEST_CASE(nothing_is_pruned_around_a_change_of_task) {
  check_spared(weak_brain(), "the task is changing", {.guard = {.task_is_changing = true}});
  BrainState brain = weak_brain();
  brain.state["task_change"]["active"] = true;
  check_spared(brain, "the task is changing");
  brain.state["task_change"]["active"] = false;
  brain.state["task_change"]["step"] = 150'001;
  check_spared(brain, "changed at step 150001");
  brain.state["task_change"]["step"] = 200'001;  // of a run that was set back
  check_spared(brain, "changed at step 200001");
  brain.state["task_change"]["step"] = 150'000;
  BOOST_TEST(prune_synapses(brain, "r").synapses_removed == 3);
}

BOOST_AUTO_TEST_CASE(nothing_is_removed_where_the_state_does_not_tell_of_the_task) {
  using Change = std::function<void(Value & state)>;
  const std::pair<const char*, Change> cases[]{
      {"no task_change", [](Value& state) { state.erase("task_change"); }},
      {"task_change.active", [](Value& state) { state["task_change"] = "long ago"; }},
      {"task_change.active", [](Value& state) { state["task_change"].erase("active"); }},
      {"task_change.active", [](Value& state) { state["task_change"]["active"] = 0; }},
      {"task_change.step", [](Value& state) { state["task_change"].erase("step"); }},
      {"task_change.step", [](Value& state) { state["task_change"]["step"] = 0.5; }},
      {"task_change.step", [](Value& state) { state["task_change"]["step"] = -1; }},
  };
  for (const auto& [reason, change] : cases) {
    BrainState brain = weak_brain();
    change(brain.state);
    check_spared(brain, reason);
    BrainState silent = silent_brain();
    change(silent.state);
    const BrainState before = silent;
    const PruneResult result = remove_neurons(silent, "r", 10);
    BOOST_TEST(result.neurons_removed == 0);
    BOOST_REQUIRE(result.spared.size() == 1);
    BOOST_TEST(result.spared[0].find(reason) != std::string::npos, result.spared[0]);
    BOOST_TEST((silent == before));
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_known_to_be_unused_stays) {
  for (const char* member : {"synapse_age", "synapse_importance"}) {
    BrainState brain = weak_brain();
    brain.regions.at("r").learning_state().erase(member);
    check_spared(brain, member);
  }
  BrainState brain = weak_brain();
  brain.regions.at("r").learning_state()["importance_window_steps"] = 49'999;
  check_spared(brain, "49999 steps, less than 50000");
  brain.regions.at("r").learning_state().erase("importance_window_steps");
  check_spared(brain, "how long importance was tracked");
  BrainState unknown = weak_brain();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  unknown.regions.at("r").learning_state()["synapse_importance"]["w"] =
      floats({2, 4}, std::vector<float>(8, nan));
  BOOST_TEST(spared_by(unknown).empty());
  unknown.regions.at("r").learning_state()["synapse_importance"]["w"] =
      floats({2, 4}, std::vector<float>(8, -1));  // importance is 0 and up
  BOOST_TEST(spared_by(unknown).empty());
  BrainState untold = weak_brain();
  untold.regions.at("r").learning_state()["importance_window_steps"] = Value::number("NaN");
  check_spared(untold, "NaN steps, less than 50000");
}

BOOST_AUTO_TEST_CASE(protected_regions_and_tensors_stay) {
  check_spared(weak_brain(), "region is protected", {.guard = {.protected_names = {"r"}}});
  check_spared(weak_brain(), "weights.w is protected",
               {.guard = {.protected_names = {"r/weights.w"}}});
}

BOOST_AUTO_TEST_CASE(age_of_another_shape_and_bad_options_are_refused) {
  BrainState brain = weak_brain();
  brain.regions.at("r").learning_state()["synapse_age"]["w"] = floats({4}, {0, 0, 0, 0});
  BOOST_CHECK_EXCEPTION(
      prune_synapses(brain, "r"), UsageError,
      says(ErrorCode::size_mismatch, "learning_state.synapse_age.w", "[4]", "[2, 4]"));
  BOOST_CHECK_EXCEPTION(prune_synapses(brain, "r", {.threshold = -1}), UsageError,
                        says(ErrorCode::bad_argument, "threshold"));
  BOOST_CHECK_EXCEPTION(prune_synapses(brain, "nowhere"), UsageError,
                        has_code(ErrorCode::not_found));
}

BOOST_AUTO_TEST_CASE(silent_neurons_without_strong_connections_go) {
  BrainState brain = silent_brain();
  const PruneResult result = remove_neurons(brain, "r", 10);
  BOOST_TEST(result.neurons_removed == 1);
  BOOST_TEST(result.neurons == (std::vector<std::uint64_t>{4}), boost::test_tools::per_element());
  BOOST_TEST(result.spared.at(0) == "3 with a strong connection");
  const BrainRegion& region = brain.regions.at("r");
  BOOST_TEST(region.n_neurons == 4);
  BOOST_TEST(region.find("config")->at("n_neurons").as_int64() == 4);
  BOOST_TEST((tensor_at(region, "weights.w_in").shape() == Shape{4, 2}));
  BOOST_TEST((tensor_at(region, "weights.w_rec").shape() == Shape{4, 4}));
  BOOST_TEST(
      numbers(tensor_at(region, "region_state.membrane")) == (std::vector<double>{1, 2, 3, 4}),
      boost::test_tools::per_element());
  BOOST_TEST((tensor_at(brain.regions.at("target"), "weights.r").shape() == Shape{3, 4}));
  BOOST_TEST(brain.regions.at("target").n_inputs == 4);
  BOOST_TEST((brain.connectivity.at("r", "target").weights.shape() == Shape{4, 3}));
  BOOST_TEST((brain.connectivity.at("r", "target").delays->shape() == Shape{4, 3}));
  const GrowthEvent event = parse_growth_history(to_json(brain.metadata)).front();
  BOOST_TEST(is_pruning(event));
  BOOST_TEST(*event.neurons_removed == 1);
  BOOST_TEST(*event.old_size == 5);
  BOOST_TEST(*event.new_size == 4);
}

BOOST_AUTO_TEST_CASE(the_longest_silent_go_first_and_come_back_bit_for_bit) {
  BrainState brain = silent_brain();
  const BrainState before = brain;
  // Every weight counts as weak: 0 to 2 and 4 may go.
  const PruneResult result = remove_neurons(brain, "r", 3, {.strong_weight = 1});
  BOOST_TEST(result.neurons == (std::vector<std::uint64_t>{0, 1, 4}),
             boost::test_tools::per_element());
  BOOST_TEST(brain.regions.at("r").n_neurons == 2);
  undo_pruning(brain, result.log);
  check_same_state(brain, before);
}

BOOST_AUTO_TEST_CASE(a_strong_connection_to_another_region_keeps_a_neuron) {
  BrainState brain = silent_brain();
  brain.connectivity.at("r", "target").weights.mutable_as<float>()[4 * 3] = -0.1F;
  BOOST_TEST(remove_neurons(brain, "r", 10).neurons_removed == 0);
  brain = silent_brain();
  brain.regions.at("target").find_path("weights.r")->as_tensor().mutable_as<float>()[4] = 0.1F;
  BOOST_TEST(remove_neurons(brain, "r", 10).neurons_removed == 0);
}

BOOST_AUTO_TEST_CASE(strong_weights_of_any_type_keep_a_neuron) {
  for (const auto& [dtype, last_byte] : {std::pair{DType::f8_e4m3, 0x30}, {DType::c64, 0x3F}}) {
    BrainState brain = silent_brain();
    Tensor weights = Tensor::zeros(dtype, {5, 2});
    weights.mutable_bytes().back() = std::byte(last_byte);  // 0.5, and i / 2
    brain.regions.at("r").weights()["other"] = weights;
    BOOST_TEST(remove_neurons(brain, "r", 10).neurons_removed == 0);
  }
}

BOOST_AUTO_TEST_CASE(neurons_stay_where_something_speaks_against_it) {
  const auto spared = [](BrainState brain, const RemoveOptions& options = {}) {
    const BrainState before = brain;
    BOOST_TEST(remove_neurons(brain, "r", 10, options).neurons_removed == 0);
    BOOST_TEST((brain == before));
  };
  spared(silent_brain(), {.guard = {.task_is_changing = true}});
  spared(silent_brain(), {.guard = {.protected_names = {"r"}}});
  spared(silent_brain(), {.protected_neurons = {4}});
  spared(silent_brain(), {.min_silent_steps = 300'000});
  BrainState unknown = silent_brain();
  unknown.regions.at("r").learning_state().erase("silent_steps");
  spared(unknown);
  BrainState changed = silent_brain();
  changed.state["task_change"]["step"] = 499'999;
  spared(changed);
}

// 0 would say that inputs are not counted, and an undo could not tell what it was.
BOOST_AUTO_TEST_CASE(a_count_of_inputs_that_would_come_to_0_is_refused) {
  BrainState brain = silent_brain();
  const auto removed = static_cast<std::uint32_t>(remove_neurons(brain, "r", 10).neurons_removed);
  BOOST_TEST_REQUIRE(removed != 0u);
  brain = silent_brain();
  brain.regions.at("target").n_inputs = removed;
  const BrainState before = brain;
  BOOST_CHECK_EXCEPTION(remove_neurons(brain, "r", 10), UsageError,
                        says(ErrorCode::size_mismatch, "n_inputs"));
  BOOST_TEST((brain == before));
}

BOOST_AUTO_TEST_CASE(one_neuron_always_stays) {
  BrainState brain;
  brain.training_steps = 500'000;
  say_unchanged(brain);
  BrainRegion& region = brain.regions.add("r", {.n_neurons = 3});
  region.learning_state()["silent_steps"] = floats({3}, {1e6F, 1e6F, 1e6F});
  BOOST_TEST(remove_neurons(brain, "r", 10).neurons_removed == 2);
  BOOST_TEST(brain.regions.at("r").n_neurons == 1);
}

BOOST_AUTO_TEST_CASE(groups_and_populations_lose_no_single_neurons) {
  for (const bool has_groups : {true, false}) {
    BrainState brain;
    brain.training_steps = 500'000;
    say_unchanged(brain);
    BrainRegion region = has_groups ? striatum() : hippocampus();
    region.learning_state()["silent_steps"] =
        floats({region.n_neurons}, std::vector<float>(region.n_neurons, 1e6F));
    brain.regions.add("r", std::move(region));
    BOOST_CHECK_EXCEPTION(remove_neurons(brain, "r", 1, {.strong_weight = 1e9}), UsageError,
                          has_code(ErrorCode::wrong_state));
  }
}

BOOST_AUTO_TEST_CASE(trees_that_are_no_logs_are_refused) {
  BrainState brain = weak_brain();
  const Value log = prune_synapses(brain, "r").log;
  const BrainState before = brain;
  const auto refused = [&](const char* member, const Value& value) {
    Value bad = log;
    bad[member] = value;
    BOOST_CHECK_EXCEPTION(undo_pruning(brain, bad), UsageError,
                          says(ErrorCode::bad_argument, "no log of a pruning"));
    BOOST_TEST((brain == before));
  };
  refused("version", 2);
  refused("kind", "words");
  refused("region", 5);
  refused("tensors", Value());
  Value entry = log.at("tensors").elements()[0];
  entry["positions"] = floats({3}, {1, 4, 6});
  Value tensors = Value::array();
  tensors.push_back(entry);
  refused("tensors", tensors);
  Value outside = log;
  const std::vector<std::uint64_t> positions{1, 4, 8};
  outside["tensors"].elements()[0]["positions"] =
      Tensor::copy_of<std::uint64_t>({3}, std::span(positions));
  BOOST_CHECK_EXCEPTION(undo_pruning(brain, outside), UsageError,
                        has_code(ErrorCode::size_mismatch));
  BOOST_TEST((brain == before));
  brain.regions.remove("r");
  BOOST_CHECK_EXCEPTION(undo_pruning(brain, log), UsageError, has_code(ErrorCode::not_found));
}

BOOST_AUTO_TEST_SUITE_END()
