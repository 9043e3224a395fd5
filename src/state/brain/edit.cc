// Changes of a brain that happen together or not at all. Each region is copied when it is first
// asked for (a cheap copy, its tensors are shared until they are written), and commit() moves the
// copies to their places. It cannot fail: whatever has to be loaded was loaded when the copy was
// made.

#include "state/brain/edit.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "state/brain/stored_region.h"
#include "thalia/error.h"

namespace thalia::state {

const BrainRegion& require_region(const BrainState& brain, std::string_view name) {
  if (const BrainRegion* found = brain.regions.find(name)) return *found;
  if (name.starts_with(kPathwayPrefix)) {
    if (auto* found = brain.pathways.find(name.substr(kPathwayPrefix.size()))) return *found;
  }
  throw UsageError(ErrorCode::not_found, "no such region", {.region = printable(name)});
}

BrainRegion& require_region(BrainState& brain, std::string_view name) {
  return const_cast<BrainRegion&>(require_region(std::as_const(brain), name));
}

BrainRegion& BrainEdit::region(std::string_view name) {
  const auto known = regions_.find(name);
  if (known != regions_.end()) return known->second;
  return regions_.emplace(name, require_region(brain_, name)).first->second;
}

const BrainRegion& BrainEdit::current(std::string_view name) const {
  const auto known = regions_.find(name);
  return known != regions_.end() ? known->second : require_region(std::as_const(brain_), name);
}

Connectivity& BrainEdit::connectivity() {
  if (!connectivity_) {
    std::as_const(brain_.connectivity).all();  // read here, where that may still fail
    connectivity_ = brain_.connectivity;
  }
  return *connectivity_;
}

void BrainEdit::commit() noexcept {
  for (auto& [name, region] : regions_) require_region(brain_, name) = std::move(region);
  // Moved one by one into place, so that references to the brain's connections stay valid. An edit
  // changes connections and never their number.
  if (connectivity_) std::ranges::move(connectivity_->all(), brain_.connectivity.all().begin());
  brain_.metadata = std::move(metadata_);
}

}  // namespace thalia::state
