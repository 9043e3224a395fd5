// A brain with everything in it that a state may hold.
#pragma once

#include <array>

#include "thalia/state/brain.h"

namespace thalia::test {

inline Tensor floats(const Shape& shape, float first = 1) {
  Tensor tensor = Tensor::zeros(DType::f32, shape);
  for (float& value : tensor.mutable_as<float>()) value = first++;
  return tensor;
}

/// 110 elements, one of them not zero.
inline Tensor mostly_zeros() {
  Tensor tensor = Tensor::zeros(DType::f32, {10, 11});
  tensor.mutable_as<float>()[37] = -0.0F;
  tensor.mutable_as<float>()[40] = 4;
  return tensor;
}

inline BrainRegion sample_region() {
  BrainRegion region{.n_neurons = 10,
                     .n_inputs = 11,
                     .neuron_type = NeuronType::conductance_lif,
                     .homeostatic_updated = 1'765'000'000};
  region.state["format_of_its_own"] = "first";
  region.config()["tau_ms"] = 20.0;
  region.config()["layers"] = Value::array();
  region.config()["layers"].push_back("l4");
  region.config()["seed"] = Value::number("123456789012345678901234567890");
  region.weights()["w_ff"] = floats({10, 11});
  region.weights()["w_sparse"] = mostly_zeros();
  region.weights()["w_csr"] = mostly_zeros().to_csr();
  region.weights()["missing"] = Value();
  region.homeostatic()["thresholds"] = floats({10});
  region.homeostatic()["scaling_factors"] = floats({10}, 5);
  region.region_state()["membrane"] = floats({10}, -3);
  region.region_state()["spikes"] = Tensor::zeros(DType::boolean, {10});
  region.state["neuron_state"]["membrane"] = floats({10}, 30);
  region.learning_state()["stp"]["u"] = floats({10}, 0.5F);
  region.learning_state()["stp"]["x"] = floats({10}, 0.25F);
  region.learning_state()["stp"]["tau_ms"] = 200.0;
  region.oscillators()["theta"]["phase"] = 0.5;
  region.oscillators()["theta"]["frequency_hz"] = 8;
  region.oscillators()["gamma"]["phase"] = Value::number("NaN");
  region.neuromodulators()["dopamine"] = 0.1;
  region.neuromodulators()["baselines"]["dopamine"] = -0.0;
  region.state["episodes"] = Value::array();
  for (int i = 0; i < 3; ++i) {
    Value episode;
    episode["context"] = floats({4}, static_cast<float>(i));
    episode["reward"] = i * 0.5;
    episode["correct"] = i == 1;
    region.state["episodes"].push_back(std::move(episode));
  }
  region.state["working_memory"] = floats({10}, 7);
  region.state["device"]["_type"] = "torch.device";
  region.state["device"]["_value"] = "cpu";
  region.state["odd"]["_type"] = "tensor";
  region.state["odd"]["_name"] = "no tensor at all";
  region.state["infinite"] = Value::number("-Infinity");
  region.state["empty"] = Value::object();
  region.metadata["note"] = "grüße";
  region.metadata["limit"] = Value::number("Infinity");
  return region;
}

inline BrainState sample_brain() {
  BrainState brain;
  brain.regions.add("cortex", sample_region());
  brain.regions.add("a region with a name of more than 31 bytes", {.n_neurons = 3});
  brain.pathways.add("cortex_to_striatum", {.n_neurons = 2}).weights()["w"] = floats({2, 3});
  brain.connectivity.add(
      {"cortex", "a region with a name of more than 31 bytes", mostly_zeros(), floats({10, 11})});
  brain.connectivity.add({"cortex", "cortex", mostly_zeros().to_csr()});
  brain.state["oscillators"]["theta"]["phase"] = 1.5;
  brain.state["scheduler"]["events_processed"] = 34;
  brain.state["scheduler"]["delays"] = floats({5});
  brain.state["trial_state"]["last_action"] = Value();
  brain.state_metadata["owner"] = "grüße";
  brain.state_metadata["limit"] = Value::number("NaN");
  brain.metadata["description"] = "everything";
  brain.metadata["best_loss"] = Value::number("Infinity");
  brain.training_steps = 1000;
  return brain;
}

}  // namespace thalia::test
