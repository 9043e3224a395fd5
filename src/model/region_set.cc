#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "thalia/brain_state.h"

namespace thalia {

// One region, or how to get it. Several threads may ask for it at once: the first reads it.
struct RegionSet::Slot {
  Slot(std::string of_name, BrainRegion of_region)
      : name(std::move(of_name)), region(std::move(of_region)), is_loaded(true) {}
  Slot(std::string of_name, Loader of_load) : name(std::move(of_name)), load(std::move(of_load)) {}
  Slot(const Slot& other) : name(other.name) {
    const std::lock_guard lock(other.mutex);
    region = other.region;
    load = other.load;
    is_loaded = other.is_loaded.load();
  }

  BrainRegion& get() {
    if (is_loaded.load(std::memory_order_acquire)) return region;
    const std::lock_guard lock(mutex);
    if (!is_loaded.load(std::memory_order_relaxed)) {
      region = load();
      load = nullptr;  // and with it what it holds on to
      is_loaded.store(true, std::memory_order_release);
    }
    return region;
  }

  std::string name;
  BrainRegion region;
  Loader load;
  std::atomic<bool> is_loaded = false;
  mutable std::mutex mutex;
};

RegionSet::RegionSet() = default;
RegionSet::~RegionSet() = default;
RegionSet::RegionSet(RegionSet&&) noexcept = default;
RegionSet& RegionSet::operator=(RegionSet&&) noexcept = default;

RegionSet::RegionSet(const RegionSet& other) {
  slots_.reserve(other.slots_.size());
  for (const auto& slot : other.slots_) insert(std::make_unique<Slot>(*slot));
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
  throw UsageError(ErrorCode::not_found, "no such region", {.region = printable(name)});
}

BrainRegion& RegionSet::add(std::string name, BrainRegion region) {
  return insert(std::make_unique<Slot>(std::move(name), std::move(region))).region;
}

void RegionSet::add_lazy(std::string name, Loader load) {
  insert(std::make_unique<Slot>(std::move(name), std::move(load)));
}

RegionSet::Slot& RegionSet::insert(std::unique_ptr<Slot> slot) {
  if (contains(slot->name)) {
    throw UsageError(ErrorCode::duplicate, "a region of that name is there already",
                     {.region = printable(slot->name)});
  }
  Slot& inserted = *slots_.emplace_back(std::move(slot));
  by_name_.emplace(inserted.name, &inserted);
  return inserted;
}

bool RegionSet::remove(std::string_view name) {
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
  return slot(name).is_loaded;
}

const BrainRegion& RegionSet::at(std::string_view name) const {
  return slot(name).get();
}

BrainRegion& RegionSet::at(std::string_view name) {
  return slot(name).get();
}

const BrainRegion* RegionSet::find(std::string_view name) const {
  Slot* found = find_slot(name);
  return found == nullptr ? nullptr : &found->get();
}

BrainRegion* RegionSet::find(std::string_view name) {
  Slot* found = find_slot(name);
  return found == nullptr ? nullptr : &found->get();
}

bool operator==(const RegionSet& a, const RegionSet& b) {
  return std::ranges::equal(a.slots_, b.slots_, [](const auto& x, const auto& y) {
    return x->name == y->name && x->get() == y->get();
  });
}

}  // namespace thalia
