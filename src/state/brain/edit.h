// Changes of a brain that come into force together, or not at all.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "thalia/state/brain.h"

namespace thalia::state {

/// A region by its name, or a pathway as "pathway:NAME". @throws UsageError (not_found).
BrainRegion& require_region(BrainState& brain, std::string_view name);
const BrainRegion& require_region(const BrainState& brain, std::string_view name);

/// Copies of what is changed, until commit() puts them in place; references that others have to the
/// brain's regions and connections stay valid.
class BrainEdit {
 public:
  explicit BrainEdit(BrainState& brain) : brain_(brain), metadata_(brain.metadata) {}

  /// As it was when the edit began.
  const BrainState& brain() const noexcept { return brain_; }
  /// A copy to be changed. Valid until commit(). @throws UsageError (not_found).
  BrainRegion& region(std::string_view name);
  /// The region as the edit has left it so far. @throws UsageError (not_found).
  const BrainRegion& current(std::string_view name) const;
  Connectivity& connectivity();
  Value& metadata() { return metadata_; }
  /// Puts the copies in place. Everything that can fail has been done by now.
  void commit() noexcept;

 private:
  BrainState& brain_;
  std::map<std::string, BrainRegion, std::less<>> regions_;
  std::optional<Connectivity> connectivity_;
  Value metadata_;
};

}  // namespace thalia::state
