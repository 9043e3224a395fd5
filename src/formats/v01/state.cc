// Maps documents of version 0.1 to brains and back. Tensors are shared, not copied. Properties of
// regions that 0.1 has no place for are not refused but listed as losses. What would be read back
// as something else is refused: a name with a meaning of its own, and elements that no type of 0.1
// holds.
#include "formats/v01/state.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/source/list_names.h"
#include "formats/v01/metadata.h"
#include "formats/v01/names.h"
#include "formats/v01/widen.h"
#include "io/output/save_time.h"

namespace thalia {
namespace {

using formats::kConnectivityRegion;
using formats::kStateRegion;

// 0.1 has no number of neurons of its own: the elements of the membrane count.
std::uint64_t neurons_of(const Value& state) {
  for (const std::string_view component : {component::kNeuronState, component::kRegionState}) {
    const Value* found = state.find(component);
    const Value* membrane = found == nullptr ? nullptr : found->find("membrane");
    if (membrane != nullptr && membrane->is_tensor()) return membrane->as_tensor().element_count();
  }
  return 0;
}

BrainRegion region_from(const std::string& name, const Value& state) {
  BrainRegion region;
  region.state = state;
  const std::uint64_t neurons = neurons_of(state);
  region.n_neurons = static_cast<std::uint32_t>(neurons);
  if (region.n_neurons != neurons) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "more neurons than a region can have",
                           {.section = "region",
                            .field = "membrane",
                            .region = printable(name),
                            .value = fmt::format("{} elements", neurons),
                            .bound = fmt::format("at most {}", UINT32_MAX)});
  }
  return region;
}

// For a name that occurs twice the last entry counts, in the place of the first, as in a Python
// dictionary.
void put_region(RegionSet& set, const std::string& name, const Value& state) {
  if (BrainRegion* known = set.find(name)) {
    *known = region_from(name, state);
  } else {
    set.add(name, region_from(name, state));
  }
}

[[noreturn]] void fail_connectivity(std::string field, std::string_view bound) {
  throw FormatError(ErrorCode::bad_value, "no connections of a brain",
                    {.section = "region",
                     .field = std::move(field),
                     .region = std::string(kConnectivityRegion),
                     .value = "something else",
                     .bound = std::string(bound)});
}

BrainConnection connection_from(const Value& value) {
  const auto member = [&](std::string_view name, Value::Kind kind) -> const Value& {
    const Value* found = value.find(name);
    if (found == nullptr || found->kind() != kind)
      fail_connectivity(std::string(name), kind_name(kind));
    return *found;
  };
  BrainConnection connection;
  connection.source = member("source", Value::Kind::string).as_string();
  connection.target = member("target", Value::Kind::string).as_string();
  connection.weights = member("weights", Value::Kind::tensor).as_tensor();
  if (value.find("delays") != nullptr)
    connection.delays = member("delays", Value::Kind::tensor).as_tensor();
  return connection;
}

void take_connections(const Value& state, Connectivity& connectivity) {
  const Value* connections = state.find("connections");
  if (connections == nullptr || !connections->is_array()) fail_connectivity("connections", "array");
  // A set, as a file may hold very many connections.
  std::set<std::pair<std::string, std::string>> pairs;
  for (const Value& value : connections->elements()) {
    BrainConnection connection = connection_from(value);
    if (!pairs.emplace(connection.source, connection.target).second)
      fail_connectivity("connections", "each pair of regions once");
    connectivity.all().push_back(std::move(connection));
  }
}

// Collects what 0.1 has no place for: one sentence for each kind of loss, naming its regions.
class Losses {
 public:
  void note(const std::string& what, std::string_view region) {
    regions_[what].emplace_back(region);
  }
  void add_to(std::vector<std::string>& sentences) const {
    for (const auto& [what, regions] : regions_)
      sentences.push_back(fmt::format("{} of {} is lost", what, formats::list_names(regions)));
  }

 private:
  std::map<std::string, std::vector<std::string>> regions_;
};

void note_losses(const BrainRegion& region, std::string_view name, Losses& losses) {
  if (region.n_neurons != neurons_of(region.state)) losses.note("n_neurons", name);
  if (region.n_inputs != 0) losses.note("n_inputs", name);
  if (region.neuron_type != NeuronType::none) losses.note("neuron_type", name);
  if (region.homeostatic_updated != 0) losses.note("homeostatic_updated", name);
  if (region.metadata.size() != 0) losses.note("metadata", name);
}

Value connectivity_state(const Connectivity& connectivity, const formats::V01Names& names) {
  Value connections = Value::array();
  for (const BrainConnection& connection : connectivity.all()) {
    Value entry = Value::object();
    entry["source"] = names.known(connection.source);
    entry["target"] = names.known(connection.target);
    entry["weights"] = connection.weights;
    if (connection.delays) entry["delays"] = *connection.delays;
    connections.push_back(std::move(entry));
  }
  Value state = Value::object();
  state["connections"] = std::move(connections);
  return state;
}

// Components that cannot be in the metadata: those it has no place for, or with tensors.
Value remaining_state(const Value& state) {
  Value rest = Value::object();
  for (const auto& [name, value] : state.members())
    if (!formats::is_v01_metadata_component(name) || value.has_tensors()) rest.add(name, value);
  return rest;
}

std::uint64_t timestamp_for(const BrainState& brain, const V01StateOptions& options) {
  if (options.timestamp) return *options.timestamp;
  if (const auto noted = formats::noted_v01_timestamp(brain)) return *noted;
  return io::save_time({});
}

}  // namespace

BrainState from_v01(const V01Document& document) {
  BrainState brain;
  brain.training_steps = document.header.training_steps;
  formats::take_v01_metadata(document, brain);
  for (const V01Entry& entry : document.entries) {
    if (entry.name == kStateRegion) {
      for (const auto& [name, value] : entry.state.members()) brain.state[name] = value;
    } else if (entry.name == kConnectivityRegion) {
      take_connections(entry.state, brain.connectivity);
    } else if (entry.name.starts_with(formats::kPathwayPrefix)) {
      put_region(brain.pathways, entry.name.substr(formats::kPathwayPrefix.size()), entry.state);
    } else {
      put_region(brain.regions, entry.name, entry.state);
    }
  }
  return brain;
}

V01Conversion to_v01(const BrainState& brain, const V01StateOptions& options) {
  V01Conversion conversion;
  V01Document& document = conversion.document;
  formats::V01Names names;
  io::MemoryBudget budget(options.limits, options.stored_bytes);
  formats::V01Widener widener(budget);
  Losses losses;
  const auto add = [&](std::string name, Value state) {
    // A copy of the tree; the tensors in it are shared until one is widened.
    widener.widen(state, name);
    document.entries.push_back({std::move(name), std::move(state)});
  };
  // Regions and pathways first: connections ask for the names that these were given.
  for (const std::string& name : brain.regions.names()) {
    const BrainRegion& region = brain.regions.at(name);
    note_losses(region, name, losses);
    add(names.region(name), region.state);
  }
  for (const std::string& name : brain.pathways.names()) {
    const BrainRegion& pathway = brain.pathways.at(name);
    note_losses(pathway, std::string(formats::kPathwayPrefix) + name, losses);
    add(names.pathway(name), pathway.state);
  }
  if (Value rest = remaining_state(brain.state); rest.size() != 0)
    add(std::string(kStateRegion), std::move(rest));
  if (!brain.connectivity.empty())
    add(std::string(kConnectivityRegion), connectivity_state(brain.connectivity, names));

  document.header.timestamp = timestamp_for(brain, options);
  document.header.training_steps = brain.training_steps;
  // Before the metadata, which are made from the finished header and entries.
  count_v01_totals(document);
  document.metadata = formats::make_v01_metadata(brain, document);
  conversion.losses = names.sentences();
  for (std::string& sentence : widener.sentences())
    conversion.losses.push_back(std::move(sentence));
  losses.add_to(conversion.losses);
  return conversion;
}

}  // namespace thalia
