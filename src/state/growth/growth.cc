// Growth of a region together with what depends on its size: connections, inputs of other regions,
// the growth history. It works on a BrainEdit, a copy that shares tensors with the brain, and
// commits at the end: after any error the brain is what it was. Regions that have to be looked at
// are loaded, others are not.

#include "thalia/state/growth.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "state/brain/edit.h"
#include "state/brain/stored_region.h"
#include "state/growth/record.h"
#include "state/growth/region.h"

namespace thalia {
namespace {

using state::BrainEdit;

constexpr std::array<std::string_view, 3> kInitNames{"sparse_random", "xavier", "uniform"};

// Connections from and to the region, grown; none of the others is looked at. `old_neurons` are the
// region's, whose edit has the new ones already.
void grow_connections(BrainEdit& edit, std::string_view region, std::uint32_t old_neurons,
                      std::uint32_t n_new, const GrowthOptions& options, GrowthResult& result) {
  const auto neurons_of = [&](const std::string& name) {
    return name == region ? std::uint64_t{old_neurons} : edit.current(name).n_neurons;
  };
  // A connection of a region with itself grows at both ends.
  for (BrainConnection& connection : edit.connectivity().all()) {
    if (connection.source != region && connection.target != region) continue;
    const state::Ends old_ends{neurons_of(connection.source), neurons_of(connection.target)};
    const state::Ends new_ends{old_ends.source + (connection.source == region ? n_new : 0),
                               old_ends.target + (connection.target == region ? n_new : 0)};
    connection = state::grown_connection(connection, old_ends, new_ends, options, result);
  }
}

// Regions and pathways that take inputs from the one that grows: grown too, or named.
void grow_targets(BrainEdit& edit, const RegionSet& set, std::string_view prefix,
                  std::string_view source, std::uint32_t n_new, const GrowthOptions& options,
                  GrowthResult& result) {
  GrowthOptions of_target = options;
  // These belong to the region that grows, not to those that listen to it, which may have tensors
  // of the same paths.
  of_target.population.clear();
  of_target.axes.clear();
  for (const std::string& name : set.names()) {
    const std::string full = std::string(prefix) + name;
    if (full == source) continue;
    if (!options.grow_targets) {
      // Only a hint for the caller, not worth loading a region for.
      if (set.is_loaded(name) && state::takes_inputs_from(edit.current(full), full, source))
        result.targets_left.push_back(full);
      continue;
    }
    const auto size = state::find_source(edit.current(full), full, source, of_target);
    if (!size) continue;
    GrowthResult grown =
        state::grow_region_source(edit.region(full), full, source, *size + n_new, of_target);
    result.synapses_added += grown.synapses_added;
    std::move(grown.tensors.begin(), grown.tensors.end(), std::back_inserter(result.tensors));
  }
}

}  // namespace

std::string_view weight_init_name(WeightInit init) noexcept {
  return kInitNames[static_cast<std::size_t>(init)];
}

std::optional<WeightInit> weight_init_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kInitNames.size(); ++i) {
    if (kInitNames[i] == name) return static_cast<WeightInit>(i);
  }
  return std::nullopt;
}

GrowthResult state::grow_output(BrainEdit& edit, std::string_view region, std::uint32_t n_new,
                                const GrowthOptions& options) {
  const std::uint32_t old_neurons = edit.current(region).n_neurons;
  GrowthResult result = grow_region_output(edit.region(region), region, n_new, options);
  if (!result.nothing_done.empty()) return result;
  grow_connections(edit, region, old_neurons, n_new, options, result);
  grow_targets(edit, edit.brain().regions, "", region, n_new, options, result);
  grow_targets(edit, edit.brain().pathways, kPathwayPrefix, region, n_new, options, result);
  append_event(edit.metadata(),
               growth_event(edit.brain().training_steps, region, {}, result, options.reason));
  return result;
}

GrowthResult grow_output(BrainState& brain, std::string_view region, std::uint32_t n_new,
                         const GrowthOptions& options) {
  BrainEdit edit(brain);
  GrowthResult result = state::grow_output(edit, region, n_new, options);
  if (result.nothing_done.empty()) edit.commit();
  return result;
}

GrowthResult grow_source(BrainState& brain, std::string_view region, std::string_view source,
                         std::uint64_t new_size, const GrowthOptions& options) {
  BrainEdit edit(brain);
  GrowthResult result =
      state::grow_region_source(edit.region(region), region, source, new_size, options);
  if (!result.nothing_done.empty()) return result;
  state::append_event(edit.metadata(), state::growth_event(brain.training_steps, region, source,
                                                           result, options.reason));
  edit.commit();
  return result;
}

}  // namespace thalia
