// The inverse of growth's question: which axes, anywhere in the brain, have an index for each
// neuron of one region, so that removing a neuron can take it out of all of them. An axis that was
// missed would leave tensors that disagree about the number of neurons; therefore every doubt is an
// error, and nothing is removed.

#include "state/growth/neuron_axes.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "state/brain/stored_region.h"
#include "thalia/types.h"

namespace thalia::state {
namespace {

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

}  // namespace

NeuronAxes neuron_axes(const BrainState& brain, std::string_view region,
                       const BrainRegion& of_region, const TensorAxes& declared) {
  Finding finding(region, of_region.n_neurons);
  finding.add_own(of_region, declared);
  finding.add_targets(brain.regions, "");
  finding.add_targets(brain.pathways, kPathwayPrefix);
  finding.add_connections(brain);
  return finding.take();
}

}  // namespace thalia::state
