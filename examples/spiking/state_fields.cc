#include "spiking/state_fields.h"

namespace spiking {
namespace {

using thalia::DType;
using thalia::Role;
using thalia::Shape;

template <typename Range>
StateField field(const std::string& name, Role role, DType dtype, Shape shape, Range&& array) {
  return {{.name = name, .dtype = dtype, .shape = shape, .role = role},
          std::as_writable_bytes(std::span(array))};
}

}  // namespace

std::vector<StateField> state_fields(Network& network, std::size_t r) {
  Region& region = network.regions[r];
  const Shape each_neuron{region.size};
  const Shape each_rhythm{region.oscillators.phase.size()};
  const Shape each_modulator{kNeuromodulators};
  const Shape each_synapse{region.recurrent.eligibility.size()};

  std::vector<StateField> fields{
      field("thresholds", Role::homeostatic, DType::f32, each_neuron,
            region.homeostasis.thresholds),
      field("scaling_factors", Role::homeostatic, DType::f32, each_neuron,
            region.homeostasis.scaling_factors),

      field("membrane", Role::region_state, DType::f32, each_neuron, region.lif.membrane),
      field("synaptic_current", Role::region_state, DType::f32, each_neuron, region.lif.current),
      field("refractory", Role::region_state, DType::u8, each_neuron, region.lif.refractory),
      field("spikes", Role::region_state, DType::boolean, each_neuron, region.lif.spikes),
      field("arriving", Role::region_state, DType::f32, {DelayRing::kSlots, region.size},
            region.ring.all()),

      field("trace", Role::learning_state, DType::f32, each_neuron, region.learning.trace),
      field("bcm_threshold", Role::learning_state, DType::f32, each_neuron,
            region.learning.bcm_threshold),
      field("last_spike", Role::learning_state, DType::u32, each_neuron,
            region.learning.last_spike),
      field("stp_u", Role::learning_state, DType::f32, each_neuron, region.short_term.u),
      field("stp_x", Role::learning_state, DType::f32, each_neuron, region.short_term.x),
      field("w_rec.eligibility", Role::learning_state, DType::f32, each_synapse,
            region.recurrent.eligibility),

      field("phase", Role::oscillator, DType::f64, each_rhythm, region.oscillators.phase),
      field("frequency_hz", Role::oscillator, DType::f64, each_rhythm,
            region.oscillators.frequency_hz),

      field("level", Role::neuromodulator, DType::f32, each_modulator,
            region.neuromodulators.level),
      field("baseline", Role::neuromodulator, DType::f32, each_modulator,
            region.neuromodulators.baseline),
  };
  for (Pathway& pathway : network.pathways) {
    if (pathway.plan.target != r) continue;
    const std::string source = network.regions[pathway.plan.source].plan.name;
    fields.push_back(field("w_dense." + source, Role::weights, DType::f32,
                           {pathway.dense.rows, pathway.dense.columns}, pathway.dense.weights));
    if (pathway.plan.plastic) {
      fields.push_back(field("eligibility." + source, Role::learning_state, DType::f32,
                             {pathway.sparse.eligibility.size()}, pathway.sparse.eligibility));
    }
  }
  return fields;
}

}  // namespace spiking
