#include "thalia/growth.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "model/brain_edit.h"
#include "model/growth_record.h"
#include "model/growth_region.h"
#include "model/stored_region.h"

namespace thalia {
namespace {

constexpr std::array<std::string_view, 3> kInitNames{"sparse_random", "xavier", "uniform"};

std::uint64_t neurons_of(const BrainState& brain, const std::string& region) {
  const BrainRegion* found = brain.regions.find(region);
  if (found != nullptr) return found->n_neurons;
  throw UsageError(ErrorCode::not_found, "a connection names a region that is not there",
                   {.region = printable(region)});
}

// Connections from and to the region, grown; none of the others is looked at.
Connectivity grown_connections(const BrainState& brain, std::string_view region,
                               std::uint32_t n_new, const GrowthOptions& options,
                               GrowthResult& result) {
  Connectivity connectivity = brain.connectivity;
  for (BrainConnection& connection : connectivity.all()) {
    if (connection.source != region && connection.target != region) continue;
    const model::Ends old_ends{neurons_of(brain, connection.source),
                               neurons_of(brain, connection.target)};
    const model::Ends new_ends{old_ends.source + (connection.source == region ? n_new : 0),
                               old_ends.target + (connection.target == region ? n_new : 0)};
    connection = model::grown_connection(connection, old_ends, new_ends, options, result);
  }
  return connectivity;
}

// A region that was grown and is not yet in its place.
struct Pending {
  BrainRegion* place;
  BrainRegion region;
};

// Regions and pathways that take inputs from the one that grows, which is the first of `pending`.
void grow_targets(RegionSet& set, std::string_view prefix, std::string_view source,
                  std::uint32_t n_new, const GrowthOptions& options, std::vector<Pending>& pending,
                  GrowthResult& result) {
  GrowthOptions of_target = options;
  of_target.population.clear();
  for (const std::string& name : set.names()) {
    const std::string full = std::string(prefix) + name;
    if (full == source) continue;
    BrainRegion region = std::as_const(set).at(name);
    const auto size = model::find_source(region, full, source, of_target);
    if (!size) continue;
    GrowthResult grown = model::grow_region_source(region, full, source, *size + n_new, of_target);
    result.synapses_added += grown.synapses_added;
    std::move(grown.tensors.begin(), grown.tensors.end(), std::back_inserter(result.tensors));
    pending.push_back({&set.at(name), std::move(region)});
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

GrowthResult grow_output(BrainState& brain, std::string_view region, std::uint32_t n_new,
                         const GrowthOptions& options) {
  BrainRegion& place = model::require_region(brain, region);
  std::vector<Pending> pending{{&place, place}};
  GrowthResult result = model::grow_region_output(pending.front().region, region, n_new, options);
  if (!result.nothing_done.empty()) return result;
  Connectivity connectivity = grown_connections(brain, region, n_new, options, result);
  if (options.grow_targets) {
    grow_targets(brain.regions, "", region, n_new, options, pending, result);
    grow_targets(brain.pathways, model::kPathwayPrefix, region, n_new, options, pending, result);
  }
  Value metadata = brain.metadata;
  model::append_event(
      metadata, model::growth_event(brain.training_steps, region, {}, result, options.reason));
  for (auto& [place_of, grown] : pending) *place_of = std::move(grown);
  // One by one: references to connections stay valid.
  std::ranges::move(connectivity.all(), brain.connectivity.all().begin());
  brain.metadata = std::move(metadata);
  return result;
}

GrowthResult grow_source(BrainState& brain, std::string_view region, std::string_view source,
                         std::uint64_t new_size, const GrowthOptions& options) {
  BrainRegion& place = model::require_region(brain, region);
  BrainRegion grown = place;
  GrowthResult result = model::grow_region_source(grown, region, source, new_size, options);
  if (!result.nothing_done.empty()) return result;
  Value metadata = brain.metadata;
  model::append_event(
      metadata, model::growth_event(brain.training_steps, region, source, result, options.reason));
  place = std::move(grown);
  brain.metadata = std::move(metadata);
  return result;
}

}  // namespace thalia
