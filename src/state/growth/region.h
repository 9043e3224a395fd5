// One region, and one connection, grown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "state/brain/edit.h"
#include "thalia/state/brain.h"
#include "thalia/state/growth.h"

namespace thalia::state {

/// grow_output() of one region, its connections left alone. After an error it is as before.
GrowthResult grow_region_output(BrainRegion& region, std::string_view name, std::uint32_t n_new,
                                const GrowthOptions& options);
/// grow_source() of one region.
GrowthResult grow_region_source(BrainRegion& region, std::string_view name, std::string_view source,
                                std::uint64_t new_size, const GrowthOptions& options);

/// thalia::grow_output() as a step of an edit, which is to be given up after an error.
GrowthResult grow_output(BrainEdit& edit, std::string_view region, std::uint32_t n_new,
                         const GrowthOptions& options);

/// True if some tensor has an axis of that source; false if the region's "axes" are wrong and
/// tell nothing.
bool takes_inputs_from(const BrainRegion& region, std::string_view name, std::string_view source);
/// Inputs that the region has from a source; nullopt if no tensor has an axis of it. @throws
/// UsageError (size_mismatch) if tensors disagree.
std::optional<std::uint64_t> find_source(const BrainRegion& region, std::string_view name,
                                         std::string_view source, const GrowthOptions& options);
/// @throws UsageError (not_found) naming the sources that there are.
std::uint64_t require_source(const BrainRegion& region, std::string_view name,
                             std::string_view source, const GrowthOptions& options);

/// What members of a region's config repeat.
struct Counts {
  std::uint32_t neurons = 0;
  std::uint32_t inputs = 0;
};
/// Updates members of a config that repeat a count. One that holds another number means something
/// else and stays.
void update_config(Value& config, const Counts& before, const Counts& now);

/// Neurons of both ends of a connection.
struct Ends {
  std::uint64_t source = 0;
  std::uint64_t target = 0;
  friend bool operator==(const Ends&, const Ends&) = default;
};
/// The connection's matrices from ends of one size to ends of another. Matrices lie as
/// [source, target], or the other way round where only that fits. What was grown is appended to
/// `result`. @throws UsageError (size_mismatch) if neither fits.
BrainConnection grown_connection(const BrainConnection& connection, const Ends& old_ends,
                                 const Ends& new_ends, const GrowthOptions& options,
                                 GrowthResult& result);

/// n_neurons, and the members of the config that repeat it. @throws UsageError (size_mismatch)
/// if the count leaves 1 to 2^32 - 1.
void change_neurons(BrainRegion& region, std::int64_t change);
/// As change_neurons(), for n_inputs; a count of 0 means that none is kept, and stays 0.
void change_inputs(BrainRegion& region, std::int64_t change);

/// Stored elements of the weights, by which synapses are counted.
std::uint64_t synapse_count(const Tensor& weights) noexcept;

}  // namespace thalia::state
