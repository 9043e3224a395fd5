// The differences between tables and texts of two checkpoints. No payload is read.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "state/precision/glob.h"
#include "thalia/state/diff.h"

namespace thalia::state {

/// What the tables say of a tensor; of a delta's, what they say of the state's.
using FactsOf = std::function<TensorFacts(const TensorView& tensor)>;
TensorFacts tensor_facts(const TensorView& tensor);

/// For each of two files.
struct Facts {
  FactsOf before = tensor_facts;
  FactsOf after = tensor_facts;
};

/// Compares the members of two objects by their keys, and those of objects within them; an empty
/// text is an object without members.
std::vector<FieldDiff> diff_objects(std::string_view before, std::string_view after,
                                    const ReadLimits& limits);

/// The tensors that somebody wants to have compared. Externally synchronised.
class TensorFilter {
 public:
  /// Everything, if there are no patterns.
  explicit TensorFilter(std::vector<std::string> patterns = {});

  bool takes_everything() const noexcept { return patterns_.empty(); }
  bool takes(std::string_view region, const TensorView& tensor);
  /// `matrix` is weights or delays.
  bool takes(const ConnectionView& connection, std::string_view matrix);
  /// @throws UsageError (not_found) for a pattern that fits nothing of what was asked for, with
  /// what it may have been meant to be: a tensor, or one of `others`.
  void check(const std::vector<std::string>& others = {}) const { use_.check(others); }

 private:
  bool takes(const TensorNames& names);

  std::vector<std::string> patterns_;
  PatternUse use_;
};

/// nullopt if nothing differs.
std::optional<TensorDiff> diff_tensors(const TensorView& before, const TensorView& after,
                                       const Facts& facts = {});
/// What the filter takes of a region that both files have; differs() tells whether that is
/// anything.
RegionDiff diff_regions(const RegionView& before, const RegionView& after, TensorFilter& filter,
                        const ReadLimits& limits, const Facts& facts = {});
bool differs(const RegionDiff& region) noexcept;
/// The same of one that one file has.
RegionDiff region_on_one_side(const RegionView& region, thalia::Change change, TensorFilter& filter,
                              const Facts& facts = {});
/// As diff_tensors(), for two connections with the same pair of names.
std::optional<ConnectionDiff> diff_connections(const ConnectionView& before,
                                               const ConnectionView& after, TensorFilter& filter,
                                               const Facts& facts = {});
/// As region_on_one_side().
ConnectionDiff connection_on_one_side(const ConnectionView& connection, thalia::Change change,
                                      TensorFilter& filter, const Facts& facts = {});

}  // namespace thalia::state
