// The regions that a writer of tensors by names has declared so far.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>

#include "thalia/writer.h"

namespace thalia::formats {

/// The regions declared so far, by name. Externally synchronised.
class RegionIds {
 public:
  /// The region of that name; the first call for it declares it. @throws as Writer::add_region().
  RegionId of(Writer& writer, std::string name) {
    auto region = ids_.find(name);
    if (region == ids_.end()) {
      const RegionId id = writer.add_region({.name = name});
      region = ids_.emplace(std::move(name), id).first;
    }
    return region->second;
  }

 private:
  std::unordered_map<std::string, RegionId> ids_;
};

}  // namespace thalia::formats
