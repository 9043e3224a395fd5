// The file that holds the newest state: a whole .thalia file at each moment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/output/atomic_file.h"
#include "state/delta/file_chain.h"
#include "state/delta/held_base.h"
#include "thalia/state/delta.h"
#include "thalia/store/follow.h"

namespace thalia::store {

/// How the tensors of two states differ: REGION/NAME.
struct StateDifference {
  std::vector<std::string> changed{};  ///< different, or new
  std::vector<std::string> removed{};
  bool texts = false;  ///< metadata, steps, or texts of regions differ, or connections
  bool is_empty() const noexcept { return changed.empty() && removed.empty() && !texts; }
};

/// Externally synchronised.
class IntoFile {
 public:
  explicit IntoFile(const FollowOptions& options) : options_(options) {}

  /// What the file there holds, if it is one that can be read.
  void find();
  /// Against the file; of one that is not there, all is changed.
  StateDifference compare(const state::FileChain& chain) const;
  /// The file, known by what it was made of; null if there is none.
  std::shared_ptr<const state::HeldBase> held(const FileIdentity& identity) const;
  /// Writes the chain's state beside the file, or under no name. @return bytes of it. @throws as
  /// resolve().
  std::uint64_t prepare(const std::shared_ptr<const state::FileChain>& chain);
  /// Puts what was prepared in its place. @throws as AtomicFile::commit().
  void commit();
  void discard() noexcept { prepared_.reset(); }

 private:
  const FollowOptions& options_;
  std::optional<ChainReader> file_;
  std::optional<io::AtomicFile> prepared_;
};

}  // namespace thalia::store
