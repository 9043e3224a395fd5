// Removes silent neurons with their rows and columns everywhere: docs/format/growth.md, "Neurons".
// Neurons are chosen first, on the state as it is; then every axis of neuron_axes() loses them, in
// one order, which the log keeps and an undo reverses. What was taken goes into the log, axis by
// axis. The edit is committed at the end: after an error the brain is what it was.
#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "state/brain/axes.h"
#include "state/brain/stored_region.h"
#include "state/growth/prune_log.h"
#include "state/growth/record.h"
#include "state/growth/region.h"
#include "state/tensor/axis.h"
#include "state/tensor/element_decoder.h"
#include "state/tensor/element_lookup.h"
#include "state/tensor/sparse_elements.h"
#include "thalia/state/growth.h"
#include "thalia/types.h"

namespace thalia::state {
namespace {

// All axes of a brain that count the neurons of one region.
//
// The inverse of growth's question: which axes, anywhere in the brain, have an index for each
// neuron of one region, so that removing a neuron can take it out of all of them. An axis that was
// missed would leave tensors that disagree about the number of neurons; therefore every doubt is an
// error, and nothing is removed.

struct NeuronAxis {
  TensorPlace place;
  unsigned axis = 0;
  bool is_weights = false;  ///< of a matrix of weights
};

struct NeuronAxes {
  std::vector<NeuronAxis> axes;
  std::vector<std::string> targets;  ///< regions and pathways that have inputs from the region
};

bool is_matrix_of_weights(std::string_view path, const Tensor& tensor) {
  return tensor.shape().rank() >= 2 &&
         is_weights(role_of_component(path.substr(0, path.find('.'))));
}

class Finding {
 public:
  Finding(std::string_view region, std::uint64_t n_neurons)
      : region_(region), n_neurons_(n_neurons) {}

  void add_own(const BrainRegion& region, const TensorAxes& declared) {
    const RegionAxes axes(region_, region, declared);
    // Indices of a population count from its own first neuron, and those of groups count groups:
    // neither is the number of a neuron.
    if (axes.has_populations()) fail("the region has several populations of neurons");
    for_each_tensor(region.state, [&](const std::string& path, const Tensor& tensor) {
      const auto [found, per_element] = axes.neurons(path, tensor.shape());
      if (found.any() && per_element != 1) fail("an axis has one index for several neurons");
      add({.region = region_, .path = path}, tensor, found);
    });
  }

  void add_targets(const RegionSet& set, std::string_view prefix) {
    for (const std::string& name : set.names()) {
      const std::string full = std::string(prefix) + name;
      // Its own axes are in the result already, as those of neurons.
      if (full == region_) continue;
      const BrainRegion& region = set.at(name);
      const RegionAxes axes(full, region);
      const std::size_t before = result_.axes.size();
      for_each_tensor(region.state, [&](const std::string& path, const Tensor& tensor) {
        add({.region = full, .path = path}, tensor, axes.source(path, tensor.shape(), region_));
      });
      if (result_.axes.size() > before) result_.targets.push_back(full);
    }
  }

  void add_connections(const BrainState& brain) {
    for (const BrainConnection& connection : brain.connectivity.all()) {
      AxisSet axes;
      axes.set(0, connection.source == region_);
      axes.set(1, connection.target == region_);
      if (axes.none()) continue;
      add_matrix(brain, connection, "weights", connection.weights, axes);
      if (connection.delays) add_matrix(brain, connection, "delays", *connection.delays, axes);
    }
  }

  NeuronAxes take() { return std::move(result_); }

 private:
  void add_matrix(const BrainState& brain, const BrainConnection& connection, const char* path,
                  const Tensor& matrix, AxisSet axes) {
    const auto neurons_of = [&](const std::string& name) {
      return std::uint64_t{require_region(brain, name).n_neurons};
    };
    // A matrix is [source, target], or [target, source] where only that fits.
    const Shape usual{neurons_of(connection.source), neurons_of(connection.target)};
    if (matrix.shape() != usual && matrix.shape() == Shape{usual[1], usual[0]}) {
      const bool from_here = axes.test(0);
      axes.set(0, axes.test(1));
      axes.set(1, from_here);
    }
    add({.source = connection.source, .target = connection.target, .path = path}, matrix, axes);
  }

  void add(const TensorPlace& place, const Tensor& tensor, const AxisSet& axes) {
    for (unsigned d = 0; d < Shape::kMaxRank; ++d) {
      if (!axes.test(d)) continue;
      if (d >= tensor.shape().rank() || tensor.shape()[d] != n_neurons_) {
        throw UsageError(ErrorCode::size_mismatch, "an axis of neurons has another extent",
                         {.region = printable(place.owner()),
                          .tensor = printable(place.path),
                          .value = tensor.shape().to_string(),
                          .bound = fmt::format("extent {} of axis {}", n_neurons_, d)});
      }
      const bool is_weights =
          place.region.empty() ? place.path == "weights" : is_matrix_of_weights(place.path, tensor);
      result_.axes.push_back({place, d, is_weights});
    }
  }

  [[noreturn]] void fail(const char* message) const {
    throw UsageError(ErrorCode::wrong_state, message,
                     {.region = printable(region_), .bound = "single neurons to remove"});
  }

  std::string region_;
  std::uint64_t n_neurons_;
  NeuronAxes result_;
};

/// The axes in the region itself, in its connections, and in regions and pathways with an axis
/// "source:REGION". Reads every region. @throws UsageError (wrong_state) for a region with
/// populations or groups of neurons; (size_mismatch) for an axis of another extent.
NeuronAxes neuron_axes(const BrainState& brain, std::string_view region,
                       const BrainRegion& of_region, const TensorAxes& declared) {
  Finding finding(region, of_region.n_neurons);
  finding.add_own(of_region, declared);
  finding.add_targets(brain.regions, "");
  finding.add_targets(brain.pathways, kPathwayPrefix);
  finding.add_connections(brain);
  return finding.take();
}

}  // namespace
}  // namespace thalia::state

namespace thalia {
namespace {

using state::NeuronAxis;

constexpr std::string_view kSilentSteps = "learning_state.silent_steps";

// Marks the neurons that have a strong weight in a matrix of any type but truth values. Numbers are
// decoded as complex, the one type that every element type converts to.
void mark_strong(const Tensor& tensor, unsigned axis, double strong, std::vector<bool>& marks) {
  if (tensor.dtype() == DType::boolean) return;  // a mask
  std::uint64_t inner = 1;
  for (unsigned d = axis + 1; d < tensor.shape().rank(); ++d) inner *= tensor.shape()[d];
  std::vector<std::uint64_t> positions;
  if (!tensor.is_dense()) positions = state::sparse_elements(tensor).positions;
  const std::uint64_t count = tensor.is_dense() ? tensor.element_count() : positions.size();
  std::array<std::complex<double>, 1024> weights;
  for (std::uint64_t first = 0; first < count; first += weights.size()) {
    const auto piece = std::span(weights).first(std::min(weights.size(), count - first));
    state::decode_elements(tensor.dtype(), tensor.values(), first, piece);
    for (std::uint64_t i = 0; i < piece.size(); ++i) {
      const std::uint64_t position = tensor.is_dense() ? first + i : positions[first + i];
      // Written so that NaN is strong: it is not known to be weak.
      if (!(std::abs(piece[i]) < strong)) marks[position / inner % tensor.shape()[axis]] = true;
    }
  }
}

class Removing {
 public:
  Removing(BrainState& brain, std::string_view name, const RemoveOptions& options)
      : brain_(brain), edit_(brain), name_(name), options_(options) {
    if (!(options.strong_weight >= 0)) {
      fail_argument(ErrorCode::bad_argument, "strong_weight",
                    fmt::format("{}", options.strong_weight), "a number of 0 or more");
    }
  }

  PruneResult run(std::uint64_t n) {
    const BrainRegion before = edit_.region(name_);
    if (std::string reason = reason_to_spare(before); !reason.empty()) {
      result_.spared.push_back(std::move(reason));
      return std::move(result_);
    }
    const state::NeuronAxes found = state::neuron_axes(brain_, name_, before, options_.axes);
    choose(before, found.axes, n);
    if (result_.neurons.empty()) return std::move(result_);
    Value log = state::new_log("neurons", name_, brain_.training_steps);
    log["neurons"] = state::index_tensor(result_.neurons);
    take_out(found.axes, log);
    count_down(found.targets, log);
    result_.log = std::move(log);
    record(before.n_neurons);
    edit_.commit();
    return std::move(result_);
  }

 private:
  std::string reason_to_spare(const BrainRegion& region) const {
    const auto& kept = options_.guard.protected_names;
    if (std::ranges::find(kept, name_) != kept.end()) return "the region is protected";
    std::string change = state::task_change_reason(brain_, options_.guard.task_is_changing,
                                                   options_.task_window_steps);
    if (!change.empty()) return change;
    const Value* silent = region.find_path(kSilentSteps);
    if (silent == nullptr || !silent->is_tensor())
      return "no learning_state.silent_steps tells how long neurons were silent";
    if (silent->as_tensor().shape() == Shape{region.n_neurons}) return {};
    throw UsageError(ErrorCode::size_mismatch, "it has another number of neurons",
                     {.region = printable(name_),
                      .tensor = std::string(kSilentSteps),
                      .value = silent->as_tensor().shape().to_string(),
                      .bound = Shape{region.n_neurons}.to_string()});
  }

  // The longest silent first; one neuron always stays.
  void choose(const BrainRegion& region, const std::vector<NeuronAxis>& axes, std::uint64_t n) {
    std::vector<bool> is_kept(region.n_neurons);
    for (const NeuronAxis& axis : axes) {
      if (axis.is_weights)
        mark_strong(state::tensor_in(edit_, axis.place), axis.axis, options_.strong_weight,
                    is_kept);
    }
    const auto strong = static_cast<std::uint64_t>(std::ranges::count(is_kept, true));
    if (strong > 0) result_.spared.push_back(fmt::format("{} with a strong connection", strong));
    for (const std::uint64_t neuron : options_.protected_neurons) {
      // Numbers that the region does not have are ignored: it may have shrunk since.
      if (neuron < is_kept.size()) is_kept[neuron] = true;
    }
    const state::ElementLookup silent(region.find_path(kSilentSteps)->as_tensor());
    std::vector<std::uint64_t>& chosen = result_.neurons;
    for (std::uint64_t neuron = 0; neuron < is_kept.size(); ++neuron) {
      if (!is_kept[neuron] && silent.at(neuron) > static_cast<double>(options_.min_silent_steps)) {
        chosen.push_back(neuron);
      }
    }
    std::ranges::stable_sort(chosen, std::greater<>(),
                             [&](std::uint64_t neuron) { return silent.at(neuron); });
    // A region without neurons could never grow again.
    const std::uint64_t most = region.n_neurons == 0 ? 0 : region.n_neurons - 1;
    if (chosen.size() > std::min(n, most)) chosen.resize(std::min(n, most));
    // Back to ascending order, which axis.cc and the log need.
    std::ranges::sort(chosen);
  }

  void take_out(const std::vector<NeuronAxis>& axes, Value& log) {
    for (const NeuronAxis& axis : axes) {
      Tensor& tensor = state::tensor_in(edit_, axis.place);
      Value& entry = state::add_place(log, axis.place);
      entry["axis"] = axis.axis;
      Tensor taken = state::only_indices(tensor, axis.axis, result_.neurons);
      result_.tensors.push_back({axis.place.owner(), axis.place.path, taken.element_count()});
      if (axis.is_weights) result_.synapses_removed += state::synapse_count(taken);
      entry["taken"] = std::move(taken);
      // The next axis of the same tensor finds it without these indices already, so that no element
      // is taken twice.
      tensor = state::without_indices(tensor, axis.axis, result_.neurons);
    }
  }

  void count_down(const std::vector<std::string>& targets, Value& log) {
    const auto count = static_cast<std::uint32_t>(result_.neurons.size());
    result_.neurons_removed = count;
    result_.regions_affected.push_back(name_);
    state::change_neurons(edit_.region(name_), -std::int64_t{count});
    // An undo has to know whose inputs to count up again.
    log["targets"] = Value::array();
    for (const std::string& target : targets) {
      state::change_inputs(edit_.region(target), -std::int64_t{count});
      log["targets"].push_back(target);
      result_.regions_affected.push_back(target);
    }
  }

  void record(std::uint32_t old_size) {
    GrowthEvent event;
    event.type = "pruning";
    event.step = brain_.training_steps;
    event.region = name_;
    event.reason = options_.guard.reason.empty() ? "silent" : options_.guard.reason;
    event.neurons_removed = result_.neurons_removed;
    event.synapses_pruned = result_.synapses_removed;
    event.safety_level = options_.guard.safety_level;
    event.old_size = old_size;
    event.new_size = old_size - result_.neurons_removed;
    state::append_event(edit_.metadata(), event);
  }

  BrainState& brain_;
  state::BrainEdit edit_;
  std::string name_;
  const RemoveOptions& options_;
  PruneResult result_;
};

}  // namespace

PruneResult remove_neurons(BrainState& brain, std::string_view region, std::uint64_t n,
                           const RemoveOptions& options) {
  return Removing(brain, region, options).run(n);
}

}  // namespace thalia
