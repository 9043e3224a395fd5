// In which order the files of a chain are written anew, so that each of them can be restored at any
// moment. docs/format/deltas.md, "Rebasing".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace thalia::state {

/// A file that takes its own place: full, or as a delta of what another file is at that moment.
struct RebaseStep {
  std::size_t file;
  std::optional<std::size_t> base{};

  friend bool operator==(const RebaseStep&, const RebaseStep&) = default;
};

/// What has to be written so that the first of `order` is a full file and each other one a delta of
/// the one before it. Files that are not in `order` keep their bases. A file that would be deeper
/// than `max_depth` by that is full. What is based on a file that changes is first written as a
/// delta of something that stays, and again afterwards.
/// @param bases of all files; a file has no base, or a shorter way to a full file than the file
/// itself: there are no circles. @param order each at most once.
std::vector<RebaseStep> plan_rebase(std::span<const std::optional<std::size_t>> bases,
                                    std::span<const std::size_t> order, unsigned max_depth);

/// The files that become a base before they are written anew, if they ever are: each once.
std::vector<std::size_t> first_bases(std::span<const RebaseStep> steps);

/// @throws UsageError (bad_argument) for what is not 1 to 255: a delta that makes room is one
/// deeper for a moment, and every reader reads 256.
void check_rebase_depth(unsigned max_depth);

}  // namespace thalia::state
