// Which tensors may be stored as products of low rank, and the mark of a lossy state in the
// metadata. The mark is set before any tensor is tried, since the layout of the file needs the
// length of the metadata: a state may carry a higher generation than its tensors turn out to need.

#include "model/delta/low_rank_delta.h"

#include <algorithm>

#include "base/fail.h"
#include "model/brain/stored_brain.h"
#include "thalia/brain_region.h"

namespace thalia::model {

std::optional<QuantizationTarget> low_rank_target(const DeltaSource& source) {
  const TensorSpec& spec = source.tensor->spec;
  if (!source.key.source.empty() || spec.encoding != Encoding::dense) return std::nullopt;
  return QuantizationTarget{.path = fmt::format("regions.{}.{}.{}", source.key.region,
                                                component_of_role(spec.role), spec.name),
                            .region = source.key.region,
                            .name = spec.name,
                            .role = spec.role,
                            .dtype = spec.dtype,
                            .shape = spec.shape};
}

LossyGeneration mark_low_rank(const std::vector<DeltaSource>& sources,
                              const LowRankOptions& options, std::string& metadata) {
  check_low_rank(options);
  const bool any = std::any_of(sources.begin(), sources.end(), [&](const DeltaSource& source) {
    const auto target = low_rank_target(source);
    return target && may_be_low_rank(options, *target);
  });
  if (!any) return {};
  Value tree = read_metadata(metadata, {});
  const LossyGeneration generation =
      next_generation(lossy_generation_of(tree), options.max_generations);
  set_lossy_generation(tree, generation);
  metadata = metadata_text(tree);
  return generation;
}

}  // namespace thalia::model
