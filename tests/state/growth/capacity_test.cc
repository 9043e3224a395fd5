#include "thalia/state/growth.h"

#include <utility>

#include "boost_test.h"
#include "growth_sample.h"
#include "support/errors.h"
#include "thalia/state/metadata.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(capacity)

namespace {

BrainState brain_of(std::uint32_t n_neurons, float weight, double rate) {
  BrainState brain;
  BrainRegion& region = brain.regions.add("r", {.n_neurons = n_neurons});
  region.weights()["w"] =
      Tensor::copy_of<float>({n_neurons, 4}, std::vector<float>(n_neurons * 4, weight));
  region.learning_state()["firing_rate"] = rate;
  return brain;
}

}  // namespace

BOOST_AUTO_TEST_CASE(metrics_follow_the_formulae_of_the_original) {
  BrainState brain;
  BrainRegion& region = brain.regions.add("r", {.n_neurons = 4});
  const std::vector<float> weights{1, -0.95F, 0.9F, 0.2F, 0.1F, 0.05F, 0, -0.5F};
  region.weights()["w"] = Tensor::copy_of<float>({4, 2}, std::span(weights));
  region.weights()["bias"] = Tensor::zeros(DType::f32, {4});
  const std::vector<std::uint8_t> spikes{1, 0, 1, 1};
  region.region_state()["spikes"] =
      Tensor::copy_of(DType::boolean, {4}, std::as_bytes(std::span(spikes)));
  const CapacityMetrics metrics = capacity_metrics(brain, "r");
  BOOST_TEST(metrics.neuron_count == 4);
  BOOST_TEST(metrics.synapse_count == 8);
  BOOST_TEST(metrics.firing_rate == 0.75);
  // Above 0.9: 1 and 0.95, and not 0.9F, which is below 0.9 x 1.
  BOOST_TEST(metrics.weight_saturation == 2.0 / 8);
  // Above 0.1: these, 0.9, 0.2, 0.5, and 0.1F, which is above 0.1.
  BOOST_TEST(metrics.synapse_usage == 6.0 / 8);
  BOOST_TEST(metrics.utilization == 0.4 * 0.75 + 0.4 * 0.25 + 0.2 * 0.75);
  BOOST_TEST(!metrics.growth_recommended);
  BOOST_TEST(!metrics.pruning_safe);
}

BOOST_AUTO_TEST_CASE(a_sparse_matrix_has_the_metrics_of_the_dense_one) {
  BrainState brain = brain_of(10, 0.5F, 0.1);
  Tensor& weights = brain.regions.at("r").find_path("weights.w")->as_tensor();
  weights.mutable_as<float>()[3] = 0;
  const CapacityMetrics dense = capacity_metrics(brain, "r");
  weights = weights.to_csr();
  const CapacityMetrics sparse = capacity_metrics(brain, "r");
  BOOST_TEST(sparse.utilization == dense.utilization);
  BOOST_TEST(sparse.synapse_usage == 39.0 / 40);
}

BOOST_AUTO_TEST_CASE(growth_is_recommended_by_the_first_share_that_is_high) {
  struct Case {
    std::uint32_t n_neurons;
    float weight;
    double rate;
    const char* reason;
    std::uint32_t amount;
  };
  for (const auto& [n_neurons, weight, rate, reason, amount] :
       {Case{100, 1, 1, "weight_saturation", 20}, Case{20, 1, 0, "weight_saturation", 10},
        Case{100, 0, 0.95, "firing_rate", 15}, Case{100, 0, 0.9, "", 0}}) {
    const CapacityMetrics metrics = capacity_metrics(brain_of(n_neurons, weight, rate), "r");
    BOOST_TEST(metrics.growth_reason == reason);
    BOOST_TEST(metrics.growth_recommended == (amount != 0));
    BOOST_TEST(metrics.growth_amount == amount);
  }
  // Used, and not saturated: one weight of each matrix is ten times the others.
  BrainState used = brain_of(100, 0.5F, 0);
  used.regions.at("r").find_path("weights.w")->as_tensor().mutable_as<float>()[0] = 5;
  BOOST_TEST(capacity_metrics(used, "r").growth_reason == "synapse_usage");
}

BOOST_AUTO_TEST_CASE(every_region_and_pathway_with_neurons_is_looked_at) {
  BrainState brain = test::brain();
  brain.regions.add("no_population");
  const auto needs = check_growth_needs(brain);
  BOOST_REQUIRE(needs.size() == 3);
  BOOST_TEST(needs[0].region == "cortex");
  BOOST_TEST(needs[1].region == "striatum");
  BOOST_TEST(needs[2].region == "pathway:cortex_to_striatum");
  for (const GrowthNeed& need : needs) {
    for (const double share : {need.metrics.firing_rate, need.metrics.weight_saturation,
                               need.metrics.synapse_usage, need.metrics.utilization}) {
      BOOST_TEST((share >= 0 && share <= 1));
    }
  }
}

BOOST_AUTO_TEST_CASE(regions_above_the_threshold_grow_on_their_own) {
  BrainState brain = brain_of(100, 1, 1);
  brain.regions.add("calm", brain_of(100, 0, 0).regions.at("r"));
  const auto grown = auto_grow(brain, 0.95);
  BOOST_REQUIRE(grown.size() == 1);
  BOOST_TEST(grown[0].region == "r");
  BOOST_TEST(grown[0].result.neurons_added == 20);
  BOOST_TEST(brain.regions.at("r").n_neurons == 120);
  BOOST_TEST(brain.regions.at("calm").n_neurons == 100);
  const auto events = parse_growth_history(to_json(brain.metadata));
  BOOST_REQUIRE(events.size() == 1);
  BOOST_TEST(events[0].reason == "weight_saturation");
}

BOOST_AUTO_TEST_CASE(the_threshold_is_respected) {
  BrainState brain = brain_of(100, 1, 0.8);  // utilization 0.92
  BOOST_TEST(auto_grow(brain, 0.95).empty());
  BOOST_TEST(brain.regions.at("r").n_neurons == 100);
  for (const double threshold : {-0.1, 1.1}) {
    BOOST_CHECK_EXCEPTION(auto_grow(brain, threshold), UsageError,
                          says(ErrorCode::bad_argument, "threshold"));
  }
  BrainState moderate = brain_of(60, 0, 0.5);
  BOOST_TEST(auto_grow(moderate, 0.1).at(0).result.neurons_added == 8);
}

BOOST_AUTO_TEST_CASE(regions_grow_together_or_not_at_all) {
  BrainState brain = brain_of(100, 1, 1);
  brain.regions.add("second", brain_of(100, 1, 1).regions.at("r"));
  brain.connectivity.add({"r", "second", counting(DType::f32, {100, 100})});
  const BrainRegion* place = &brain.regions.at("r");
  BrainState refusing = brain;
  refusing.regions.at("second").weights()["square"] =
      Tensor::copy_of<float>({100, 100}, std::vector<float>(10'000, 1));
  const BrainState before = refusing;
  BOOST_CHECK_EXCEPTION(auto_grow(refusing), UsageError,
                        says(ErrorCode::wrong_state, "second", "weights.square"));
  BOOST_TEST((refusing == before));
  BOOST_TEST(auto_grow(brain).size() == 2);
  BOOST_TEST(&brain.regions.at("r") == place);
  BOOST_TEST((brain.connectivity.at("r", "second").weights.shape() == Shape{120, 120}));
  BOOST_TEST(parse_growth_history(to_json(brain.metadata)).size() == 2);
}

BOOST_AUTO_TEST_CASE(regions_are_pruned_together_or_not_at_all) {
  BrainState brain = brain_of(2, 0.015F, 0);
  brain.training_steps = 100'000;
  brain.state["task_change"]["active"] = false;
  brain.state["task_change"]["step"] = 0;
  BrainRegion& region = brain.regions.at("r");
  region.learning_state()["synapse_age"]["w"] = counting(DType::f32, {2, 4}, 1e6);
  region.learning_state()["synapse_importance"]["w"] = Tensor::zeros(DType::f32, {2, 4});
  region.learning_state()["importance_window_steps"] = 50'000;
  BrainRegion& second = brain.regions.add("second", region);
  second.learning_state()["synapse_age"]["w"] = counting(DType::f32, {4, 2}, 1e6);
  const BrainState before = brain;
  BOOST_CHECK_EXCEPTION(
      auto_prune(brain, {.enable = true, .safety_level = PruneSafety::aggressive}), UsageError,
      says(ErrorCode::size_mismatch, "second", "synapse_age.w"));
  BOOST_TEST((brain == before));
}

BOOST_AUTO_TEST_CASE(nothing_is_pruned_unless_that_is_enabled) {
  BrainState brain = brain_of(2, 0.015F, 0);
  brain.training_steps = 100'000;
  BrainRegion& region = brain.regions.at("r");
  region.learning_state()["synapse_age"]["w"] = counting(DType::f32, {2, 4}, 1e6);
  region.learning_state()["synapse_importance"]["w"] = Tensor::zeros(DType::f32, {2, 4});
  region.learning_state()["importance_window_steps"] = 50'000;
  BOOST_TEST(!capacity_metrics(brain, "r").pruning_safe);  // nothing describes the task
  brain.state["task_change"]["active"] = false;
  brain.state["task_change"]["step"] = 99'000;
  BOOST_TEST(!capacity_metrics(brain, "r").pruning_safe);
  brain.state["task_change"]["step"] = 0;
  BOOST_TEST(capacity_metrics(brain, "r").pruning_safe);
  const BrainState before = brain;
  BOOST_TEST(auto_prune(brain).empty());
  BOOST_TEST(auto_prune(brain, {.enable = true}).at(0).result.synapses_removed == 0);
  BOOST_TEST((brain == before));
  const auto pruned = auto_prune(brain, {.enable = true, .safety_level = PruneSafety::aggressive});
  BOOST_TEST(pruned.at(0).result.synapses_removed == 8);
  BOOST_TEST(parse_growth_history(to_json(brain.metadata)).at(0).safety_level == "aggressive");
  undo_pruning(brain, pruned.at(0).result.log);
  BOOST_TEST((brain.regions == before.regions));
}

BOOST_AUTO_TEST_SUITE_END()
