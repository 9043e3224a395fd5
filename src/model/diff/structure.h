// The differences between tables and texts of two checkpoints. No payload is read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/precision/glob.h"
#include "thalia/diff.h"

namespace thalia::model {

/// Compares the members of two objects by their keys; an empty text is an object without members.
std::vector<FieldDiff> diff_objects(std::string_view before, std::string_view after,
                                    const ReadLimits& limits);

/// The tensors that somebody wants to have compared. Externally synchronised.
class TensorFilter {
 public:
  /// Everything, where there are no patterns.
  explicit TensorFilter(std::vector<std::string> patterns = {});

  bool takes_everything() const noexcept { return patterns_.empty(); }
  bool takes(std::string_view region, const TensorView& tensor);
  /// `matrix` is weights or delays.
  bool takes(const ConnectionView& connection, std::string_view matrix);
  /// @throws UsageError (not_found) for a pattern that fits nothing of what was asked for.
  void check() const { use_.check(); }

 private:
  bool takes(const TensorNames& names);

  std::vector<std::string> patterns_;
  PatternUse use_;
};

/// nullopt where nothing differs.
std::optional<TensorDiff> diff_tensors(const TensorView& before, const TensorView& after);
/// What the filter takes of a region that both files have; differs() tells whether that is
/// anything.
RegionDiff diff_regions(const RegionView& before, const RegionView& after, TensorFilter& filter,
                        const ReadLimits& limits);
bool differs(const RegionDiff& region) noexcept;
/// The same of one that one file has: how many tensors the filter takes, and their bytes.
RegionDiff region_on_one_side(const RegionView& region, thalia::Change change,
                              TensorFilter& filter);
/// As diff_tensors(), for two connections with the same pair of names.
std::optional<ConnectionDiff> diff_connections(const ConnectionView& before,
                                               const ConnectionView& after, TensorFilter& filter);

TensorFacts tensor_facts(const TensorView& tensor);

}  // namespace thalia::model
