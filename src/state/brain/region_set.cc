// Regions by name, in the order in which they were added, each loaded when it is first asked for. A
// region has an address of its own that stays valid while others come and go, hence the pointers;
// the index refers to names inside of them. Loading happens once, under the lock of Lazy, and so
// threads may read one set at the same time.

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "thalia/detail/once.h"
#include "thalia/state/brain.h"

namespace thalia {

struct RegionSet::Slot {
  std::string name;
  Lazy<BrainRegion> region;
};

RegionSet::RegionSet() = default;
RegionSet::~RegionSet() = default;
RegionSet::RegionSet(RegionSet&&) noexcept = default;
RegionSet& RegionSet::operator=(RegionSet&&) noexcept = default;

RegionSet::RegionSet(const RegionSet& other) {
  slots_.reserve(other.slots_.size());
  // Also copies what is not loaded yet, which then loads on its own.
  for (const auto& slot : other.slots_) insert(*slot);
}

RegionSet& RegionSet::operator=(const RegionSet& other) {
  return *this = RegionSet(other);
}

RegionSet::Slot* RegionSet::find_slot(std::string_view name) const noexcept {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

RegionSet::Slot& RegionSet::slot(std::string_view name) const {
  if (Slot* found = find_slot(name)) return *found;
  throw UsageError(
      ErrorCode::not_found,
      "no such region" + suggestion_among(name, by_name_, &decltype(by_name_)::value_type::first),
      {.region = printable(name)});
}

BrainRegion& RegionSet::add(std::string name, BrainRegion region) {
  return insert({std::move(name), Lazy(std::move(region))}).region.get();
}

void RegionSet::add_lazy(std::string name, Loader load) {
  insert({std::move(name), Lazy<BrainRegion>(std::move(load))});
}

RegionSet::Slot& RegionSet::insert(Slot slot) {
  if (contains(slot.name)) {
    throw UsageError(ErrorCode::duplicate, "a region of that name is there already",
                     {.region = printable(slot.name)});
  }
  Slot& inserted = *slots_.emplace_back(std::make_unique<Slot>(std::move(slot)));
  by_name_.emplace(inserted.name, &inserted);
  return inserted;
}

bool RegionSet::remove(std::string_view name) {
  // The index first: its key refers to the name in the slot.
  if (by_name_.erase(name) == 0) return false;
  std::erase_if(slots_, [&](const auto& slot) { return slot->name == name; });
  return true;
}

std::vector<std::string> RegionSet::names() const {
  std::vector<std::string> names;
  names.reserve(slots_.size());
  for (const auto& slot : slots_) names.push_back(slot->name);
  return names;
}

bool RegionSet::contains(std::string_view name) const noexcept {
  return find_slot(name) != nullptr;
}

bool RegionSet::is_loaded(std::string_view name) const {
  return slot(name).region.is_made();
}

const BrainRegion& RegionSet::at(std::string_view name) const {
  return slot(name).region.get();
}

BrainRegion& RegionSet::at(std::string_view name) {
  return slot(name).region.get();
}

const BrainRegion* RegionSet::find(std::string_view name) const {
  Slot* found = find_slot(name);
  return found == nullptr ? nullptr : &found->region.get();
}

BrainRegion* RegionSet::find(std::string_view name) {
  Slot* found = find_slot(name);
  return found == nullptr ? nullptr : &found->region.get();
}

bool operator==(const RegionSet& a, const RegionSet& b) {
  return std::ranges::equal(a.slots_, b.slots_, [](const auto& x, const auto& y) {
    return x->name == y->name && x->region.get() == y->region.get();
  });
}

}  // namespace thalia
