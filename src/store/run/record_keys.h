// Which keys a record has, whatever holds it: a state, a plan of a file, a file.
// docs/format/store.md, "Records".
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "thalia/state/value.h"
#include "thalia/store/config.h"

namespace thalia::store {

class RecordKeys {
 public:
  void add(std::string_view key) { keys_.emplace(key); }
  /// A region's name, and what comes before its first '.' or '/'.
  void add_path(std::string_view name);
  /// The members of a metadata object, and the keys of a tree of Python's that it holds.
  void add_metadata(const Value& metadata);
  void add_metadata_text(std::string_view json);

  /// @throws UsageError (not_found) that names all keys of the run and the phase that are missing.
  void require(const RunConfig& config, const PhaseConfig& phase) const;

 private:
  std::set<std::string, std::less<>> keys_;
};

}  // namespace thalia::store
