#include "store/save/delta_choice.h"

#include <algorithm>
#include <vector>

#include "thalia/state/delta.h"

namespace thalia::store {
namespace {

// However little each stores: a chain that deep takes as many files to be whole.
constexpr unsigned kDeepest = 64;
// What a sample of the state says of the time of reading it all may be off by that.
constexpr double kMeasuringError = 1.3;

const CheckpointEntry* find(const RunListing& listing, std::string_view file) {
  const auto found = std::ranges::find(listing.entries, file, &CheckpointEntry::file);
  return found == listing.entries.end() ? nullptr : &*found;
}

}  // namespace

std::optional<DeltaChoice> choose_delta(const RunConfig& config, const RunListing& listing,
                                        const std::string& file) {
  if (config.deltas.kind == DeltaPolicy::Kind::never || !config.is_thalia() || !listing.latest)
    return std::nullopt;
  const CheckpointEntry* const latest = find(listing, *listing.latest);
  // A file that is replaced is no base of what takes its place, and neither is what is based on it.
  if (latest == nullptr || find(listing, file) != nullptr) return std::nullopt;
  if (latest->condition == Condition::damaged) return std::nullopt;
  DeltaChoice choice{.base = latest->file,
                     .depth = latest->depth + 1,
                     .chain_bytes = latest->bytes,
                     .full_bytes = latest->bytes};
  const CheckpointEntry* link = latest;
  while (link->is_delta()) {
    const CheckpointEntry* const base = find(listing, link->base);
    if (base == nullptr || base->depth >= link->depth || base->condition == Condition::damaged)
      return std::nullopt;
    choice.chain_bytes += base->bytes;
    choice.full_bytes = base->bytes;
    link = base;
  }
  if (choice.depth > kDeepest) return std::nullopt;
  if (config.deltas.kind == DeltaPolicy::Kind::every)
    return choice.depth < config.deltas.full_every ? std::optional(choice) : std::nullopt;
  // The next delta will be about as large as the last.
  const std::uint64_t expected = latest->is_delta() ? latest->bytes : 0;
  std::optional<double> factor = latest->read_factor;
  if (factor) *factor += (*factor - 1) / latest->depth;
  if (is_too_dear(config.deltas, choice, expected, factor)) return std::nullopt;
  return choice;
}

bool is_too_dear(const DeltaPolicy& policy, const DeltaChoice& choice, std::uint64_t delta_bytes,
                 std::optional<double> read_factor) {
  if (policy.kind != DeltaPolicy::Kind::cost) return false;
  const double bytes = static_cast<double>(choice.chain_bytes) + static_cast<double>(delta_bytes);
  return bytes > policy.max_cost * static_cast<double>(choice.full_bytes) ||
         1 + (read_factor.value_or(1) - 1) * kMeasuringError > policy.max_cost;
}

}  // namespace thalia::store
