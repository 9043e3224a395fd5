// The state that a follower shows next: made of a checkpoint and of what it holds, and changed into
// what it holds once it is shown.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "io/folder/folder.h"
#include "state/delta/held_base.h"
#include "store/follow/choice.h"
#include "store/follow/held_tensors.h"
#include "store/follow/into_file.h"
#include "store/follow/spare_memory.h"
#include "thalia/error.h"
#include "thalia/store/follow.h"
#include "thalia/types.h"

namespace thalia::store {

/// A checkpoint, as it was when it was opened.
struct TakenCheckpoint {
  FollowChoice choice;
  io::EntryFacts facts{};
  FileIdentity identity{};
  bool is(const FollowChoice& other, const io::EntryFacts& other_facts) const {
    return choice.path == other.path && facts == other_facts;
  }
};

/// Made, and not shown yet.
struct PreparedState {
  TakenCheckpoint taken;
  FollowUpdate update;
  std::string metadata_json;
  std::shared_ptr<FollowedValues> values;  ///< null with a file
  bool writes = true;                      ///< false: the file has the state already
  std::size_t next = 0;                    ///< value that show() goes on with
  bool has_begun = false;                  ///< the server's memory is no state as a whole
};

/// What a follower holds: in a file, or in memory that is its own or the server's. Externally
/// synchronised.
class FollowedStates {
 public:
  /// Borrows all. @param into the file, of which nothing is asked where the options name none.
  FollowedStates(const FollowOptions& options, const FollowedFolder& folder, IntoFile& into);

  bool has_file() const noexcept { return !options_.into.empty(); }
  TensorChoice& tensors() noexcept { return tensors_; }
  /// The checkpoint whose state is held.
  const std::optional<TakenCheckpoint>& held() const noexcept { return held_; }

  /// @param with_held what is held is a base of the deltas. @param trusted what is unchanged stays
  /// as it is held. @throws what reading the chain throws; UsageError for memory that does not fit;
  /// IoError, of which is_of_output() tells whether it is the file's.
  PreparedState read(const FollowChoice& choice, const io::EntryFacts& facts, bool with_held,
                     bool trusted);
  /// The caller's mistake with memory, or the file's failure: another checkpoint would not fare
  /// better.
  bool is_final(const Error& error) const;

  /// Into the file, or into memory tensor by tensor; goes on where a hook has thrown. @throws what
  /// hooks throw; IoError.
  void show(PreparedState& state, const FollowHooks& hooks);
  /// It is what is held from now on.
  void adopt(const PreparedState& state);

 private:
  std::shared_ptr<const state::HeldBase> base() const;

  const FollowOptions& options_;
  const FollowedFolder& folder_;
  IntoFile& into_;
  TensorChoice tensors_;
  std::optional<TakenCheckpoint> held_;
  std::shared_ptr<FollowedValues> values_ = std::make_shared<FollowedValues>();
  std::shared_ptr<SpareMemory> spare_ = std::make_shared<SpareMemory>();
};

}  // namespace thalia::store
