// BrainRegion: the whole state of one region, or of one pathway, in memory.
//
//   thalia::BrainRegion cortex{.n_neurons = n, .n_inputs = m,
//                              .neuron_type = thalia::NeuronType::lif};
//   cortex.config()["tau_ms"] = 20.0;
//   cortex.weights()["w_ff"] = thalia::Tensor::borrow(thalia::DType::f32, {n, m}, bytes);
//   cortex.learning_state()["stp"]["u"] = thalia::Tensor::zeros(thalia::DType::f32, {n});
//   cortex.neuromodulators()["dopamine"] = 0.5;
//
// docs/format/states.md, "States".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/region.h"
#include "thalia/value.h"

namespace thalia {

/// What the axes of tensors count, by path: {"weights.w_rec": ["neurons", "neurons"]}.
using TensorAxes = std::map<std::string, std::vector<std::string>, std::less<>>;

/// The components of a region's state that the format knows, by the names that they have there. A
/// state may have any others.
namespace component {
inline constexpr std::string_view kConfig = "config";
inline constexpr std::string_view kWeights = "weights";
inline constexpr std::string_view kBiases = "biases";
inline constexpr std::string_view kNormalization = "normalization";
inline constexpr std::string_view kEmbeddings = "embeddings";
inline constexpr std::string_view kHomeostatic = "homeostatic";
inline constexpr std::string_view kRegionState = "region_state";
inline constexpr std::string_view kNeuronState = "neuron_state";  ///< region_state in old states
inline constexpr std::string_view kLearningState = "learning_state";
inline constexpr std::string_view kOscillators = "oscillator_state";
inline constexpr std::string_view kNeuromodulators = "neuromodulator_state";
inline constexpr std::string_view kOptimizer = "optimizer_state";
inline constexpr std::string_view kBuffers = "buffers";
inline constexpr std::string_view kOther = "other";
}  // namespace component

/// The role that the tensors of a component have in a file: other for names that are not known.
Role role_of_component(std::string_view name) noexcept;
/// The component for tensors of a role that no state names.
std::string_view component_of_role(Role role) noexcept;

/// A component of a region that need not be there: reading does not make it, writing does. Refers
/// to the region's state, and is for use at once.
class ComponentRef {
 public:
  ComponentRef(Value& state, std::string_view name) : state_(state), name_(name) {}

  /// An empty object if there is no such component.
  operator const Value&() const;  // NOLINT(*-explicit-*)
  const Value* find(std::string_view member) const noexcept;
  Value* find(std::string_view member) noexcept;
  /// @throws UsageError (not_found); (wrong_state) unless the component is an object.
  const Value& at(std::string_view member) const;
  Value& at(std::string_view member);
  std::size_t size() const noexcept;
  /// True where there was one.
  bool erase(std::string_view member);

  /// The component, made as an empty object if there is none.
  Value& make();
  /// The member, added as null if there is none.
  Value& operator[](std::string_view member) { return make()[member]; }
  Value& operator=(Value component) { return make() = std::move(component); }

 private:
  Value& state_;
  std::string name_;
};

/// A value type. Externally synchronised. The usual names inside the components:
///
/// | component | members |
/// |---|---|
/// | weights | matrices of [neurons, inputs], named freely |
/// | homeostatic | thresholds, scaling_factors: f32 of [neurons] |
/// | region_state | spikes, membrane, conductances, refractory: [neurons] |
/// | learning_state | bcm_thresholds, eligibility; stp: u, x; stdp: pre_trace, post_trace |
/// | oscillator_state | theta, gamma, …: phase (radians), frequency_hz, time_ms |
/// | neuromodulator_state | dopamine, acetylcholine, norepinephrine; baselines: the same three |
struct BrainRegion {
  std::uint32_t n_neurons = 0;
  std::uint32_t n_inputs = 0;
  NeuronType neuron_type = NeuronType::none;
  std::uint64_t homeostatic_updated = 0;  ///< Unix seconds
  /// An object: the components, each a tree of values and tensors, in their order.
  Value state = Value::object();
  /// An object without tensors: what is to be said of the region besides its state.
  Value metadata = Value::object();

  /// An empty object if there is no such component.
  const Value& component(std::string_view name) const noexcept;
  const Value& config() const noexcept { return component(component::kConfig); }
  const Value& weights() const noexcept { return component(component::kWeights); }
  const Value& homeostatic() const noexcept { return component(component::kHomeostatic); }
  const Value& region_state() const noexcept { return component(component::kRegionState); }
  const Value& learning_state() const noexcept { return component(component::kLearningState); }
  const Value& oscillators() const noexcept { return component(component::kOscillators); }
  const Value& neuromodulators() const noexcept { return component(component::kNeuromodulators); }

  /// The same to be read or written: region.weights()["w_ff"] = tensor.
  ComponentRef component(std::string_view name) { return {state, name}; }
  ComponentRef config() { return component(component::kConfig); }
  ComponentRef weights() { return component(component::kWeights); }
  ComponentRef homeostatic() { return component(component::kHomeostatic); }
  ComponentRef region_state() { return component(component::kRegionState); }
  ComponentRef learning_state() { return component(component::kLearningState); }
  ComponentRef oscillators() { return component(component::kOscillators); }
  ComponentRef neuromodulators() { return component(component::kNeuromodulators); }

  /// nullptr if there is none.
  const Value* find(std::string_view name) const noexcept { return state.find(name); }
  /// A value in the state by its dotted path: "learning_state.stp.u". A name may have dots itself;
  /// the first that fits counts. nullptr if there is none.
  const Value* find_path(std::string_view path) const;
  Value* find_path(std::string_view path);

  friend bool operator==(const BrainRegion&, const BrainRegion&) = default;
};

/// Calls visit(path, tensor) for each tensor of a tree, depth first in the order of members. Paths
/// are dotted, with "[3]" for the elements of arrays: "learning_state.stp.u", "episodes[3].state".
void for_each_tensor(const Value& tree,
                     const std::function<void(const std::string& path, const Tensor&)>& visit);
void for_each_tensor(Value& tree,
                     const std::function<void(const std::string& path, Tensor&)>& visit);

}  // namespace thalia
