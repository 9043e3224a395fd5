// The state of a network in memory: its regions, pathways and connections. docs/format/states.md,
// "States".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "thalia/detail/once.h"
#include "thalia/options.h"
#include "thalia/region.h"
#include "thalia/state/tensor_value.h"
#include "thalia/state/value.h"

namespace thalia {

// How a state in memory becomes tensors of a file, and back. docs/format/states.md, "States".

/// How the tensors of a state are stored.
enum class SparseStorage {
  automatic,  ///< dense ones of more than 100 elements, more than 90 % of them zeros, as csr or coo
              ///< if that is smaller; loading gives dense ones back
  as_is,
  dense,
  csr,  ///< matrices; others as they are
  coo,  ///< all but those of rank 0
};

struct StateLoadOptions {
  /// Tensors that were stored sparse or in another element type come back as they were saved; else
  /// as they are stored.
  bool restore = true;
  InputOptions input{};  ///< the limits
  Work work{};           ///< threads that convert elements, and the stop
};

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
  /// True if there was one.
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
  /// the first that fits counts. What stands for a value of Python's is found as that value.
  /// nullptr if there is none.
  const Value* find_path(std::string_view path) const;
  Value* find_path(std::string_view path);

  friend bool operator==(const BrainRegion&, const BrainRegion&) = default;
};

/// Calls visit(path, tensor) for each tensor of a tree, depth first in the order of members. Paths
/// are dotted, with "[3]" for the elements of arrays: "learning_state.stp.u", "episodes[3].state".
/// Below what stands for a value of Python's they are those of the value.
void for_each_tensor(const Value& tree,
                     const std::function<void(const std::string& path, const Tensor&)>& visit);
void for_each_tensor(Value& tree,
                     const std::function<void(const std::string& path, Tensor&)>& visit);

// BrainState: everything that a checkpoint of a brain holds, in memory.
//
//   thalia::BrainState brain;
//   thalia::BrainRegion& cortex = brain.regions.add("cortex");
//   // Fill the region, as above.
//   brain.connectivity.add({"cortex", "striatum", weights, delays});
//   brain.state["scheduler"]["current_time"] = 12.0;
//   brain.training_steps = 1000;
//   thalia::BrainCheckpoint::save(brain, "brain.thalia");
//
// docs/format/states.md, "States".

/// Regions by name, in the order in which they were added; regions of a file may be read when they
/// are first asked for. Const access, that first reading included, is safe from any number of
/// threads; changes are externally synchronised. References stay valid until their region is
/// removed, or the set assigned to or destroyed.
class RegionSet {
 public:
  using Loader = std::function<BrainRegion()>;

  RegionSet();
  ~RegionSet();
  RegionSet(const RegionSet& other);  ///< a region that was not read yet is read by each on its own
  RegionSet& operator=(const RegionSet& other);
  RegionSet(RegionSet&&) noexcept;
  RegionSet& operator=(RegionSet&&) noexcept;

  /// @throws UsageError (duplicate) naming the region.
  BrainRegion& add(std::string name, BrainRegion region = {});
  /// A region that `load` gives on first access, once; where it throws, the access throws the same,
  /// and the next one tries again.
  void add_lazy(std::string name, Loader load);
  /// True if there was one. Does not read it.
  bool remove(std::string_view name);

  std::size_t size() const noexcept { return slots_.size(); }
  bool empty() const noexcept { return slots_.empty(); }
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const noexcept;
  /// False of a region that would be read on access. @throws UsageError (not_found).
  bool is_loaded(std::string_view name) const;

  /// @throws UsageError (not_found) naming the region; what reading it throws.
  const BrainRegion& at(std::string_view name) const;
  BrainRegion& at(std::string_view name);
  const BrainRegion* find(std::string_view name) const;
  BrainRegion* find(std::string_view name);

  /// Same names in the same order with equal regions; reads what was not read.
  friend bool operator==(const RegionSet& a, const RegionSet& b);

 private:
  struct Slot;
  Slot* find_slot(std::string_view name) const noexcept;
  Slot& slot(std::string_view name) const;
  Slot& insert(Slot slot);

  std::vector<std::unique_ptr<Slot>> slots_;
  std::unordered_map<std::string_view, Slot*> by_name_;  ///< names lie in the slots
};

/// A projection from one region to another.
struct BrainConnection {
  std::string source;
  std::string target;
  Tensor weights;                  ///< as a rule [neurons of source, neurons of target]
  std::optional<Tensor> delays{};  ///< as a rule of the weights' shape

  friend bool operator==(const BrainConnection&, const BrainConnection&) = default;
};

/// Connections in the order in which they were added; those of a file may be read when one is first
/// asked for. Const access, that first reading included, is safe from any number of threads;
/// changes are externally synchronised.
class Connectivity {
 public:
  using Loader = std::function<std::vector<BrainConnection>()>;

  Connectivity() = default;
  /// Connections that `load` gives on first access, once; where it throws, the access throws the
  /// same, and the next one tries again. Each pair of source and target occurs once.
  explicit Connectivity(Loader load);

  /// @throws UsageError (duplicate) if there is one from that source to that target.
  BrainConnection& add(BrainConnection connection);
  bool remove(std::string_view source, std::string_view target);

  bool is_loaded() const noexcept { return table_.is_made(); }
  std::size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  /// Valid until a connection is added or removed; so are references. Sources and targets are
  /// changed here and nowhere else: by them connections are looked up.
  const std::vector<BrainConnection>& all() const { return table_.get().connections; }
  std::vector<BrainConnection>& all();
  const BrainConnection* find(std::string_view source, std::string_view target) const;
  BrainConnection* find(std::string_view source, std::string_view target);
  /// @throws UsageError (not_found) naming both.
  const BrainConnection& at(std::string_view source, std::string_view target) const;
  BrainConnection& at(std::string_view source, std::string_view target);

  friend bool operator==(const Connectivity& a, const Connectivity& b) {
    return a.all() == b.all();
  }

 private:
  struct Table {
    std::vector<BrainConnection> connections;
    /// By hashes of both names; of no use once all() was handed out to be changed.
    std::unordered_multimap<std::size_t, std::size_t> places{};
    bool is_indexed = true;
    void index();
    void insert(std::size_t place);
    const BrainConnection* find(std::string_view source, std::string_view target) const;
  };
  Lazy<Table> table_;
};

/// A value type, as the tensors in it: copying one costs its trees, not its tensors. Externally
/// synchronised, with the exception of what RegionSet and Connectivity read.
struct BrainState {
  RegionSet regions;
  RegionSet pathways;  ///< of names of their own: stored as regions "pathway:NAME"
  Connectivity connectivity;
  /// Brain-wide state by component, an object: config, oscillators, neuromodulators, scheduler,
  /// trial_state, replay, sleep_state, and any others; trees of values and tensors.
  Value state = Value::object();
  /// An object without tensors: what else is to be said of that state. Its member
  /// `connections` is the format's own.
  Value state_metadata = Value::object();
  /// The checkpoint's metadata, an object without tensors. See thalia/state/metadata.h.
  Value metadata = Value::object();
  std::uint64_t training_steps = 0;

  friend bool operator==(const BrainState&, const BrainState&) = default;
};

}  // namespace thalia
