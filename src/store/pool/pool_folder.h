// A pool's folder as it lies there. The names of its files are the truth: of what lies beside
// them, what is damaged costs a rating and nothing else. docs/format/store.md, "Pool".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/run/run_folder.h"
#include "store/save/session.h"
#include "thalia/store/pool.h"

namespace thalia::store {

struct PoolDamage {
  std::filesystem::path path;
  std::string sentence;
};

struct PoolListing {
  PoolView view;
  std::vector<std::string> temporaries;  ///< files of changes that are not done
  std::vector<std::string> lone;         ///< digests and metadata without their version
  std::vector<PoolMember> without_meta;  ///< versions without metadata
  std::vector<PoolDamage> damaged;       ///< texts that could not be read
  bool is_version_behind = false;  ///< VERSION is missing, or less than a number that was given
  std::string roster;              ///< as it is there; empty: none
};

/// @throws IoError; UsageError (not_found) if the run has no pool.
PoolListing list_pool(const RunFolder& run);

// All of these are for the holder of the run's lock. @throws IoError.

void write_version(const SaveSession& session, std::uint64_t version);
void write_meta(const SaveSession& session, const PoolMember& member);
/// The roster, as the folder is now.
void write_roster(const SaveSession& session);
/// Versions beyond PoolConfig::keep go, the oldest first, once the log has what was known of them.
std::vector<std::string> evict(const SaveSession& session);
/// What a killed process left of its changes goes.
void sweep(const SaveSession& session, const PoolListing& listing);
/// All ratings as those of models that have not played. The roster is left to be written.
void reset_ratings(const SaveSession& session);

}  // namespace thalia::store
