// What a follower may take of a folder: the checkpoints of a run's phase, or files that lie
// somewhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "io/folder/folder.h"
#include "state/delta/file_chain.h"
#include "state/delta/held_base.h"
#include "store/run/run_files.h"
#include "store/run/run_folder.h"
#include "thalia/store/follow.h"
#include "thalia/store/run.h"

namespace thalia::store {

struct FollowChoice {
  std::string phase{};
  std::uint64_t step = 0;
  bool has_step = true;  ///< false: the file cannot be read, and may be of any
  std::string name{};    ///< in its folder
  std::filesystem::path path{};
};

/// One look at the folder.
struct FollowChoices {
  std::vector<FollowChoice> files{};  ///< in the order in which they are tried, the newest first
  bool is_led = false;                ///< a pointer names the first
  std::string fingerprint{};          ///< another one where a file came, went, or has other bytes
};

/// Externally synchronised.
class FollowedFolder {
 public:
  /// @throws as Follower().
  FollowedFolder(const std::filesystem::path& folder, const FollowOptions& options);

  /// For what is read from now on.
  void set_stop(const std::stop_token& stop) { chain_.read.work.cancel = stop; }
  /// @throws IoError.
  FollowChoices look();
  /// In which names come and go.
  std::vector<std::filesystem::path> watched() const;
  /// Whether a look is worth it once the name came: digests and journals lead to nothing newer.
  static bool may_lead(std::string_view name);
  /// nullopt: the file has gone.
  std::optional<io::EntryFacts> facts(const FollowChoice& choice) const;
  /// The file with what it is based on, down to `held` if that is part of it. @throws as
  /// ChainReader::open().
  std::shared_ptr<const state::FileChain> open(
      const FollowChoice& choice, const std::shared_ptr<const state::HeldBase>& held) const;
  /// Null of a folder that is no run.
  const RunFolder* run() const noexcept { return run_ ? &RunFolder::of(*run_) : nullptr; }

 private:
  struct Known {
    io::EntryFacts facts;
    std::optional<std::uint64_t> step;  ///< none: the file cannot be read
  };
  FollowChoices look_at_run() const;
  FollowChoices look_at_files();
  std::optional<std::uint64_t> step_of(const std::string& name, const io::EntryFacts& facts);

  std::filesystem::path path_;
  std::string phase_;
  ChainOptions chain_;
  std::optional<Run> run_;
  RunFiles files_;
  std::map<std::string, Known> known_;  ///< files whose headers were read
};

}  // namespace thalia::store
