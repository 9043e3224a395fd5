#include "growth_sample.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "state/tensor/corner.h"
#include "state/tensor/element_numbers.h"
#include "thalia/error.h"

namespace thalia::test {
namespace {

Value axes(std::initializer_list<const char*> names) {
  Value list = Value::array();
  for (const char* name : names) list.push_back(name);
  return list;
}

}  // namespace

Tensor counting(DType dtype, const Shape& shape, double start) {
  std::vector<double> values(*shape.element_count());
  std::iota(values.begin(), values.end(), start);
  std::vector<std::byte> bytes(*shape.byte_length(dtype));
  state::write_numbers(dtype, values, bytes);
  return Tensor::copy_of(dtype, shape, bytes);
}

std::vector<double> numbers(const Tensor& tensor) {
  return state::numbers_of(tensor.dtype(), tensor.to_dense().bytes());
}

const Tensor& tensor_at(const BrainRegion& region, std::string_view path) {
  const Value* found = region.find_path(path);
  if (found == nullptr) throw UsageError(ErrorCode::not_found, std::string(path));
  return found->as_tensor();
}

bool keeps_corner(const Tensor& whole, const Tensor& corner) {
  return state::fits_into(corner.shape(), whole.shape()) &&
         state::with_corner(whole, corner) == whole;
}

BrainRegion striatum() {
  BrainRegion region{.n_neurons = 20, .n_inputs = 64, .neuron_type = NeuronType::conductance_lif};
  region.config()["n_output"] = 20;
  region.config()["n_actions"] = 2;
  region.config()["E_L"] = -0.25;
  region.weights()["d1"] = counting(DType::f32, {20, 64});
  region.weights()["d2"] = counting(DType::f32, {20, 64}, 5000);
  region.region_state()["membrane"] = counting(DType::f32, {20});
  region.region_state()["spikes"] = Tensor::zeros(DType::boolean, {20});
  region.region_state()["refractory"] = counting(DType::i32, {20});
  region.learning_state()["eligibility"]["d1"] = counting(DType::f32, {20, 64});
  region.learning_state()["input_trace"] = counting(DType::f32, {64});
  region.learning_state()["output_trace"] = counting(DType::f32, {20});
  region.state["rpe_state"]["value_estimates"] = counting(DType::f32, {2});
  region.state["rpe_state"]["last_rpe"] = 0.5;
  region.metadata["axes"]["rpe_state.value_estimates"] = axes({"neurons/10"});
  return region;
}

BrainRegion hippocampus() {
  BrainRegion region{.n_neurons = 26, .n_inputs = 5};
  const auto add = [&](const char* name, std::uint64_t to, std::uint64_t from, const char* of_to,
                       const char* of_from) {
    region.weights()[name] = counting(DType::f32, {to, from});
    region.metadata["axes"]["weights." + std::string(name)] = axes({of_to, of_from});
  };
  add("w_ec_dg", 12, 5, "neurons:dg", "source:ec");
  add("w_dg_ca3", 8, 12, "neurons:ca3", "neurons:dg");
  add("w_ca3_ca3", 8, 8, "neurons:ca3", "neurons:ca3");
  add("w_ca3_ca1", 6, 8, "neurons:ca1", "neurons:ca3");
  add("w_ec_ca1", 6, 5, "neurons:ca1", "source:ec");
  add("w_ca1_inhib", 6, 6, "neurons:ca1", "neurons:ca1");
  region.region_state()["ca1_membrane"] = counting(DType::f32, {6});
  region.metadata["axes"]["region_state.ca1_membrane"] = axes({"neurons:ca1"});
  region.region_state()["sequence_position"] = 3;
  return region;
}

BrainRegion cortex() {
  BrainRegion region{.n_neurons = 6, .n_inputs = 7, .neuron_type = NeuronType::lif};
  region.config()["n_neurons"] = 6;
  region.config()["n_inputs"] = 7;
  region.config()["tau_ms"] = 20.0;
  region.weights()["thalamus"] = counting(DType::f32, {6, 4});
  region.weights()["pfc"] = counting(DType::f32, {6, 3}, 100);
  region.weights()["w_rec"] = counting(DType::f32, {6, 6}, 200).to_csr();
  region.weights()["bias"] = counting(DType::f32, {6});
  region.homeostatic()["thresholds"] = counting(DType::f32, {6});
  region.homeostatic()["scaling_factors"] = counting(DType::f32, {6}, 2);
  region.region_state()["membrane"] = counting(DType::f32, {6});
  region.learning_state()["bcm_theta"] = counting(DType::f64, {6});
  region.learning_state()["eligibility"]["thalamus"] = counting(DType::f32, {6, 4});
  region.learning_state()["stp"]["u"] = counting(DType::f32, {6});
  region.learning_state()["stdp"]["pre_trace"] = counting(DType::f32, {7});
  region.oscillators()["theta"]["phase"] = 0.25;
  region.neuromodulators()["dopamine"] = Tensor::copy_of<float>({}, std::vector<float>{0.5F});
  return region;
}

BrainState brain() {
  BrainState brain;
  brain.training_steps = 1000;
  brain.regions.add("cortex", cortex());
  brain.regions.add("striatum", striatum());
  brain.connectivity.add(
      {"cortex", "striatum", counting(DType::f32, {6, 20}), counting(DType::u16, {6, 20})});
  brain.connectivity.add({"cortex", "cortex", counting(DType::f32, {6, 6}).to_coo(),
                          counting(DType::f32, {6, 6}).to_coo()});
  BrainRegion pathway{.n_neurons = 20, .n_inputs = 6};
  pathway.weights()["cortex"] = counting(DType::f32, {20, 6});
  brain.pathways.add("cortex_to_striatum", std::move(pathway));
  return brain;
}

}  // namespace thalia::test
