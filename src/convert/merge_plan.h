// Which input of a merge each thing is taken from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/convert.h"
#include "thalia/reader.h"

namespace thalia::formats {

/// Decides conflicts by the preference, and keeps them in words: those that it settles as losses,
/// the others for one error. Externally synchronised.
class MergeConflicts {
 public:
  MergeConflicts(const std::vector<Reader>& inputs, const MergePreference& preference)
      : inputs_(inputs), preference_(preference) {}

  /// `what` ("region 'x'") is in these inputs, ascending, at least one. `same(a, b)` compares what
  /// inputs a and b have. @return the input to take it from; of an open conflict any.
  std::size_t choose(const std::string& what, const std::vector<std::size_t>& holders,
                     const std::function<bool(std::size_t, std::size_t)>& same);

  /// @throws UsageError (duplicate) where conflicts are open.
  void throw_if_open() const;
  const std::vector<std::string>& losses() const noexcept { return losses_; }

 private:
  std::string name(std::size_t input) const;

  const std::vector<Reader>& inputs_;
  const MergePreference& preference_;
  std::vector<std::string> losses_;
  std::vector<std::string> open_;
};

/// One thing of one input, by its number there.
struct Taken {
  std::size_t input;
  std::uint32_t number;
};

/// In the order of the inputs, each name once.
std::vector<Taken> plan_regions(const std::vector<Reader>& inputs, const ReadLimits& limits,
                                MergeConflicts& conflicts);
std::vector<Taken> plan_connections(const std::vector<Reader>& inputs, MergeConflicts& conflicts);

/// Empty if no input has any. @throws FormatError that names the file.
std::string merge_metadata(const std::vector<Reader>& inputs, const ReadLimits& limits,
                           MergeConflicts& conflicts);

}  // namespace thalia::formats
