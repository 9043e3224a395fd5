// A state of a brain as what a Writer is told: regions, pathways, the brain-wide region and
// connections, in this order. Names that mean something to the format are refused for regions,
// since a reader would take them for pathways or for the brain itself. A StoredBrain keeps each
// tensor that the writer borrows and has to outlive it.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/write/file_save.h"
#include "state/brain/axes.h"
#include "state/brain/region_shapes.h"
#include "state/brain/stored_brain.h"
#include "state/quantize/payload.h"
#include "state/value/tree_json.h"
#include "thalia/error.h"
#include "thalia/state/brain.h"

namespace thalia::state {
namespace {

// Checks a state before it is written, so that no file has shapes that contradict each other:
// docs/format/states.md, "Shapes". Readers do not ask for any of this. Throws UsageError
// (size_mismatch) as check_shapes() does, and for axes that the metadata declare as neurons and
// that are more or fewer.
void check_declared_shapes(std::string_view name, const BrainRegion& region) {
  if (region.n_neurons == 0) return;
  check_shapes(name, region.n_neurons, ruled_shapes(region));
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
Value converted_connections(const std::vector<StoredConnectionTensors>& connections) {
  bool any = false;
  std::string text;
  JsonWriter json(text);
  json.begin_object().key(kConnectionsMember).begin_array();
  const auto write = [&](std::string_view member, const StoredTensor& tensor) {
    any |= was_converted(tensor);
    json.key(member).begin_object();
    write_converted(json, tensor);
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
  if (options.check_shapes) check_declared_shapes(name, region);
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
  // After the connections, of whose matrices it tells; left out if it would say nothing.
  BrainRegion own{.state = brain.state, .metadata = brain.state_metadata};
  if (own.metadata.find(kConnectionsMember) != nullptr) {
    fail_argument(ErrorCode::bad_argument, "state_metadata", std::string(kConnectionsMember),
                  "a name that the format leaves");
  }
  Value reported = converted_connections(stored.connections);
  for (auto& [name, value] : reported.members()) own.metadata.add(name, std::move(value));
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
