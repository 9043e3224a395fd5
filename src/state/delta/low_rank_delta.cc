// Which tensors of a delta may lose something, and the mark of a lossy state in the
// metadata. The mark is set before any tensor is tried, since the layout of the file needs the
// length of the metadata: a state may carry a higher generation than its tensors turn out to need.

#include "state/delta/low_rank_delta.h"

#include <algorithm>

#include "base/fail.h"
#include "state/brain/stored_brain.h"
#include "state/value/path_names.h"
#include "thalia/state/brain.h"

namespace thalia::state {

using Globs = std::vector<std::string>;

QuantizationTarget target_of(const KeyedTensor& source) {
  const TensorSpec& spec = source.tensor->spec;
  const TensorKey& key = source.key;
  if (key.region.empty()) {
    return {.path = path_in_connection(key.source, key.target, key.delays ? "delays" : "weights"),
            .region = {},
            .name = {},
            .role = key.delays ? Role::other : Role::weights,
            .dtype = spec.dtype,
            .shape = spec.shape};
  }
  return {.path = path_in_region(key.region, component_of_role(spec.role), spec.name),
          .region = key.region,
          .name = spec.name,
          .role = spec.role,
          .dtype = spec.dtype,
          .shape = spec.shape};
}

bool is_excluded(const QuantizationTarget& target, const DeltaOptions& options) {
  const TensorNames names = names_of(target);
  return std::ranges::any_of(options.loss.exclude,
                             [&](const std::string& glob) { return names.fit(glob); });
}

void check_patterns(const std::vector<KeyedTensor>& sources, const DeltaOptions& options) {
  PatternUse exclude("exclude", options.loss.exclude);
  PatternUse include("include", options.loss.low_rank ? options.loss.low_rank->include : Globs());
  if (exclude.is_empty() && include.is_empty()) return;
  for (const KeyedTensor& source : sources) {
    const QuantizationTarget target = target_of(source);
    exclude.see(names_of(target));
    include.see(names_of(target));
  }
  exclude.check();
  include.check();
}

bool may_be_low_rank(const KeyedTensor& source, const DeltaOptions& options) {
  const TensorSpec& spec = source.tensor->spec;
  if (!options.loss.low_rank || source.key.region.empty() || spec.encoding != Encoding::dense ||
      spec.shape.rank() != 2 || spec.role == Role::optimizer)
    return false;
  const QuantizationTarget target = target_of(source);
  return !is_excluded(target, options) &&
         is_chosen(target, options.loss.low_rank->min_elements, options.loss.low_rank->include, {});
}

LossyGeneration mark_low_rank(const std::vector<KeyedTensor>& sources, const DeltaOptions& options,
                              std::string& metadata) {
  check_low_rank(*options.loss.low_rank);
  const bool any = std::ranges::any_of(
      sources, [&](const KeyedTensor& source) { return may_be_low_rank(source, options); });
  if (!any) return {};
  Value tree = read_metadata(metadata, {});
  const LossyGeneration generation =
      next_generation(lossy_generation_of(tree), options.loss.low_rank->max_generations);
  set_lossy_generation(tree, generation);
  metadata = metadata_text(tree);
  return generation;
}

}  // namespace thalia::state
