// A state of a brain as what a Writer is told: regions, pathways, the brain-wide region and
// connections, in this order. Names that mean something to the format are refused for regions,
// since a reader would take them for pathways or for the brain itself. A StoredBrain keeps each
// tensor that the writer borrows and has to outlive it.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/write/file_save.h"
#include "state/brain/axes.h"
#include "state/brain/stored_brain.h"
#include "state/quantize/payload.h"
#include "state/value/tree_json.h"
#include "thalia/error.h"
#include "thalia/state/brain.h"

namespace thalia::state {
namespace {

// Shapes that have to agree with a region's count of neurons, or with each other.
//
// Checks a state before it is written, so that no file has shapes that contradict each other:
// docs/format/states.md, "Shapes". Readers do not ask for any of this.

constexpr std::array<std::string_view, 3> kPerNeuron{
    "homeostatic.thresholds", "homeostatic.scaling_factors", "learning_state.silent_steps"};
constexpr std::array<std::string_view, 2> kPerSynapse{"learning_state.synapse_age",
                                                      "learning_state.synapse_importance"};

void require_shape(std::string_view region, std::string_view path, const Shape& shape,
                   const Shape& expected) {
  if (shape == expected) return;
  throw UsageError(ErrorCode::size_mismatch, "the tensor has another shape than the region",
                   {.field = "shape",
                    .region = printable(region),
                    .tensor = printable(path),
                    .value = shape.to_string(),
                    .bound = expected.to_string()});
}

/// Nothing is asked of a region without neurons. @throws UsageError (size_mismatch) naming region,
/// tensor, shape and what was expected: for `homeostatic.thresholds` and `scaling_factors` and
/// `learning_state.silent_steps` unless they are [n_neurons]; for `synapse_age` and
/// `synapse_importance` that have another shape than their matrix; for axes that the metadata
/// declare as neurons and that are more or fewer. docs/format/states.md, "Shapes".
void check_shapes(std::string_view name, const BrainRegion& region) {
  // A region without neurons says nothing that shapes could contradict.
  if (region.n_neurons == 0) return;
  for (const std::string_view path : kPerNeuron) {
    const Value* found = region.find_path(path);
    if (found != nullptr && found->is_tensor())
      require_shape(name, path, found->as_tensor().shape(), Shape{region.n_neurons});
  }
  // Collected once for both, and only where a state tracks its synapses.
  std::unordered_map<std::string, Shape> weights;
  for (const std::string_view tracked : kPerSynapse) {
    const Value* found = region.find_path(tracked);
    if (found == nullptr) continue;
    if (weights.empty()) {
      for_each_tensor(region.component(component::kWeights),
                      [&](const std::string& matrix, const Tensor& tensor) {
                        weights.emplace(matrix, tensor.shape());
                      });
    }
    for_each_tensor(*found, [&](const std::string& matrix, const Tensor& tensor) {
      const auto of_matrix = weights.find(matrix);
      // What tracks no matrix is the application's own.
      if (of_matrix != weights.end()) {
        require_shape(name, fmt::format("{}.{}", tracked, matrix), tensor.shape(),
                      of_matrix->second);
      }
    });
  }
  std::optional<RegionAxes> axes;
  try {
    axes.emplace(name, region);
  } catch (const UsageError&) {
    return;  // "axes" of the application's own
  }
  axes->check_declared();
}

// What the matrices of connections were before they were stored, for the metadata of the brain-wide
// region; an empty object where all are what they were. Entries have the order of the connections.
Value origins(const std::vector<StoredConnectionTensors>& connections) {
  bool any = false;
  std::string text;
  JsonWriter json(text);
  json.begin_object().key(kConnectionsMember).begin_array();
  const auto write = [&](std::string_view member, const StoredTensor& tensor) {
    any |= has_origin(tensor);
    json.key(member).begin_object();
    write_origin(json, tensor);
    json.end_object();
  };
  for (const StoredConnectionTensors& connection : connections) {
    json.begin_object();
    write("weights", connection.weights);
    if (connection.delays) write("delays", *connection.delays);
    json.end_object();
  }
  json.end_array().end_object();
  return any ? thalia::parse_json(text) : Value::object();
}

StoredRegion checked_region(std::string name, const BrainRegion& region, const std::string& path,
                            const StoreOptions& options) {
  if (options.check_shapes) check_shapes(name, region);
  return store_region(std::move(name), region, path, options);
}

}  // namespace

std::string metadata_text(const Value& metadata) {
  std::string text;
  JsonWriter json(text);
  write_tree(json, metadata, "metadata");
  return text;
}

StoredBrain store_brain(const BrainState& brain, const StoreOptions& options) {
  StoredBrain stored;
  for (const std::string& name : brain.regions.names()) {
    if (name == kBrainRegion || name.starts_with(kPathwayPrefix)) {
      fail_argument(ErrorCode::bad_argument, "region", printable(name),
                    fmt::format("a name other than '{}' and those that start with '{}'",
                                kBrainRegion, kPathwayPrefix));
    }
    stored.regions.push_back(
        checked_region(name, brain.regions.at(name), "regions." + name, options));
  }
  for (const std::string& name : brain.pathways.names()) {
    stored.regions.push_back(checked_region(std::string(kPathwayPrefix) + name,
                                            brain.pathways.at(name), "pathways." + name, options));
  }
  for (const BrainConnection& connection : brain.connectivity.all()) {
    const std::string path =
        fmt::format("connections.{}->{}", connection.source, connection.target);
    StoredConnectionTensors tensors{
        .source = connection.source,
        .target = connection.target,
        .weights = store_tensor(connection.weights, {}, Role::weights, path + ".weights", options)};
    if (connection.delays) {
      tensors.delays = store_tensor(*connection.delays, {}, Role::other, path + ".delays", options);
    }
    stored.connections.push_back(std::move(tensors));
  }
  // After the connections, whose origins it tells; left out where it would say nothing.
  BrainRegion own{.state = brain.state, .metadata = brain.state_metadata};
  if (own.metadata.find(kConnectionsMember) != nullptr) {
    fail_argument(ErrorCode::bad_argument, "state_metadata", std::string(kConnectionsMember),
                  "a name that the format leaves");
  }
  Value told = origins(stored.connections);
  for (auto& [name, value] : told.members()) own.metadata.add(name, std::move(value));
  if (own.state.size() != 0 || own.metadata.size() != 0) {
    stored.regions.push_back(store_region(std::string(kBrainRegion), own, {}, options));
  }
  stored.training_steps = brain.training_steps;
  return stored;
}

void declare(Writer& writer, const StoredBrain& brain) {
  writer.set_metadata(brain.metadata_json);
  writer.set_training_steps(brain.training_steps);
  for (const StoredRegion& region : brain.regions) {
    const RegionId id = writer.add_region(region.spec);
    for (const StoredTensor& stored : region.tensors) {
      if (stored.quantized) {
        container::add_quantized(writer, id, stored.spec, stored.quantized->side,
                                 stored.quantized->bytes);
      } else {
        writer.add_tensor(id, stored.spec, stored.tensor.bytes());
      }
    }
  }
  for (const StoredConnectionTensors& connection : brain.connections) {
    const ConnectionId id = writer.add_connection(connection.source, connection.target);
    writer.add_connection_weights(id, connection.weights.spec, connection.weights.tensor.bytes());
    if (connection.delays) {
      writer.add_connection_delays(id, connection.delays->spec, connection.delays->tensor.bytes());
    }
  }
}

}  // namespace thalia::state
