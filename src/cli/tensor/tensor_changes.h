// How far tensors of one file are from those of another, whichever formats the files have.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "thalia/state/delta.h"
#include "thalia/state/diff.h"
#include "thalia/types.h"

namespace thalia::cli {

struct TensorChange {
  std::string region;  ///< empty: it is in none
  std::string name;
  Change change = Change::changed;
  TensorLayout layout{};  ///< of the later one, if there is one
  /// norm(after - before) / norm(before): 0 if nothing changed, infinite if only the later
  /// one has something. Only elements that are finite in both count. nullopt if nothing could be
  /// compared.
  std::optional<double> relative{};
  std::string not_compared{};  ///< why
};

/// Each tensor of `after` that one of options.tensors fits, in its order; then, without patterns,
/// what only `before` has. Tensors belong together by region and name; by the name alone if one
/// of the files has no regions. Elements are read in pieces, sparse tensors one at a time.
/// @throws what opening and reading the files throws; UsageError (not_found) for a pattern that
/// fits nothing in `after`; CancelledError.
std::vector<TensorChange> tensor_changes(const std::filesystem::path& before,
                                         const std::filesystem::path& after,
                                         const ChainOptions& open, const DiffOptions& options);

}  // namespace thalia::cli
