// Several brains in one file, each under a prefix: names and texts of one of them as the file has
// them, and back. docs/format/states.md, "Ensembles".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/state/value.h"

namespace thalia::state {

/// @throws UsageError (bad_argument, duplicate) where they cannot be those of one ensemble.
void check_prefixes(const std::vector<std::string>& prefixes);

/// What a region of the brain is called in the file. @throws UsageError (bad_argument) for a prefix
/// that makes a name of it which the format leaves.
std::string name_in_ensemble(std::string_view prefix, std::string_view name);
/// The other way round; nullopt: a region of no brain under this prefix.
std::optional<std::string> name_in_brain(std::string_view prefix, std::string_view name);

/// Takes what a brain-wide region's metadata says of connections out of it: an element for each of
/// `count` connections; empty if it says nothing, or is of another number of them.
std::vector<Value> take_connections(Value& metadata, std::size_t count);
/// Whether any of them says something.
bool tells(const std::vector<Value>& connections);
/// Puts it there, unless no element says anything.
void put_connections(Value& metadata, std::vector<Value> connections);

struct EnsembleBrain {
  std::string prefix;
  std::uint64_t training_steps = 0;
  Value metadata = Value::object();  ///< the brain's alone
};

/// The metadata of a file, without brains so far: they are added one after the other.
class EnsembleMetadata {
 public:
  /// @param own is an object.
  explicit EnsembleMetadata(Value own);
  void add(EnsembleBrain brain);
  /// Once.
  Value take();

 private:
  Value own_;
  Value history_ = Value::array();
  Value brains_ = Value::array();
};

/// The brain of a file with such metadata, with its growth history. @throws as
/// ensemble_prefixes(); UsageError (wrong_state) where there is no ensemble, (not_found).
EnsembleBrain brain_in_ensemble(const Value& metadata, std::string_view prefix);

}  // namespace thalia::state
