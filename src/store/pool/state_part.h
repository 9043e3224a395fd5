// A part of a state: some of its tensors, and texts that describe these alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "state/precision/glob.h"
#include "thalia/state/delta.h"
#include "thalia/state/value.h"

namespace thalia::store {

using TensorVisitor = std::function<void(const state::TensorNames& names, const TensorSpec& spec)>;
/// All of a state, matrices of connections among them.
void for_each_tensor(const StateSource& state, const TensorVisitor& visit);

struct StatePart {
  StateSource state;  ///< its metadata is left to finish()
  Value metadata;
  std::vector<std::string> kept;  ///< REGION/NAME
  std::vector<std::string> gone;

  /// The state with the metadata as it is now.
  StateSource finish() &&;
};

struct PartRules {
  std::function<bool(const state::TensorNames& names, const TensorSpec& spec)> keeps_tensor;
  /// Whether a region that has no tensors stays; not set: it does.
  std::function<bool(const std::string& region)> keeps_empty{};
  /// What texts have of training goes if no tensor of theirs stays: training_state.h.
  bool forgets_training = false;
};
/// A region that loses all of its tensors goes, unless a connection that stays ends there.
/// @throws FormatError for metadata that is no JSON.
StatePart part_of(StateSource state, const PartRules& rules);

/// True if one of the patterns fits.
bool fits_any(const std::vector<std::string>& patterns, const state::TensorNames& names);

/// Calls visit(names) with the tensor's own names, and with each key of a record that it belongs
/// to: its region, and what the names of region and tensor begin with, up to a '.' or '/'.
void for_each_key_of(const state::TensorNames& names,
                     const std::function<void(const state::TensorNames&)>& visit);
/// True if one of the patterns fits the tensor, or a key that it belongs to.
bool fits_record(const std::vector<std::string>& patterns, const state::TensorNames& names);

}  // namespace thalia::store
