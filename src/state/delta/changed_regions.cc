// A region counts as changed if one of its tensors is not the base's, if it lost one, or if a
// connection at it changed, came or went. Nothing is read for this: which tensors differ was found
// while they were stored.
#include "state/delta/changed_regions.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "container/file/short_name.h"

namespace thalia::state {
namespace {

using Pair = std::pair<std::string, std::string>;

class Changes {
 public:
  Changes(const container::FilePlan& plan, const BaseNames& base,
          const std::unordered_set<std::uint32_t>& changed)
      : plan_(plan), base_(base), changed_(changed) {
    for (const BaseNames::Region& region : base.regions) regions_.emplace(region.name, &region);
  }

  std::vector<std::string> changed_regions() {
    find_changed_ends();
    std::vector<std::string> out;
    for (const container::RegionPlan& region : plan_.regions) {
      if (is_changed(region)) out.push_back(region.spec.name);
    }
    return out;
  }

  // Whatever is left of the base's regions; this empties the index, and so comes last.
  std::vector<std::string> removed_regions() {
    for (const container::RegionPlan& region : plan_.regions) regions_.erase(region.spec.name);
    std::vector<std::string> out;
    for (const BaseNames::Region& region : base_.regions) {
      if (regions_.contains(region.name)) out.push_back(region.name);
    }
    return out;
  }

 private:
  bool is_changed(const container::RegionPlan& region) const {
    const auto found = regions_.find(region.spec.name);
    if (found == regions_.end()) return true;
    const auto has = [&](std::uint32_t tensor) { return changed_.contains(tensor); };
    const auto lost = [&](const std::string& name) { return !plan_.has_tensor(region, name); };
    const auto& tensors = found->second->tensors;
    return std::any_of(region.tensors.begin(), region.tensors.end(), has) ||
           std::any_of(tensors.begin(), tensors.end(), lost) ||
           ends_.contains(container::short_name_string(region.spec.name));
  }

  // The regions at both ends of connections that are not the base's.
  void find_changed_ends() {
    constexpr std::uint32_t kNone = container::ConnectionPlan::kNone;
    std::set<Pair> kept;
    std::set<Pair> had_delays;
    for (const BaseNames::Connection& connection : base_.connections) {
      if (connection.delays) had_delays.emplace(connection.source, connection.target);
    }
    for (const container::ConnectionPlan& connection : plan_.connections) {
      Pair pair(container::short_name_string(connection.source),
                container::short_name_string(connection.target));
      const bool has_delays = connection.delays != kNone;
      if (changed_.contains(connection.weights) ||
          (has_delays && changed_.contains(connection.delays)) ||
          // Delays that are new are in `changed_` too; delays that were dropped show only here.
          had_delays.contains(pair) != has_delays)
        add(pair);
      kept.insert(std::move(pair));
    }
    for (const BaseNames::Connection& connection : base_.connections) {
      if (Pair pair(connection.source, connection.target); !kept.contains(pair)) add(pair);
    }
  }

  void add(const Pair& pair) {
    ends_.insert(pair.first);
    ends_.insert(pair.second);
  }

  const container::FilePlan& plan_;
  const BaseNames& base_;
  const std::unordered_set<std::uint32_t>& changed_;
  std::unordered_map<std::string, const BaseNames::Region*> regions_;
  std::set<std::string> ends_;  ///< short names
};

}  // namespace

void note_changed_regions(const container::FilePlan& plan, const BaseNames& base,
                          const std::unordered_set<std::uint32_t>& changed, DeltaResult& result) {
  Changes changes(plan, base, changed);
  result.changed_regions = changes.changed_regions();
  result.removed_regions = changes.removed_regions();
}

}  // namespace thalia::state
