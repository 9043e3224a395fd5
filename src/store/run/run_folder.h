// A run's folder with its configuration: where things lie, and what is in a phase.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inside.h"
#include "io/folder/folder.h"
#include "store/run/journal.h"
#include "store/run/run_files.h"
#include "thalia/store/run.h"

namespace thalia::store {

/// A phase as it lies in its folder.
struct RunListing {
  std::vector<CheckpointEntry> entries;  ///< in the order of their steps
  Journal journal;
  std::optional<std::string> latest;      ///< the file that `latest` leads to, if it is there
  std::vector<std::string> temporaries;   ///< files of saves that are not done
  std::vector<std::string> lone_digests;  ///< NAME.sha256 without a NAME
};

/// The metric that a phase's next one has to pass. docs/format/store.md, "Best".
struct Best {
  std::string file;
  std::uint64_t step = 0;
  std::string metric;
  double value = 0;
  Direction direction = Direction::min;
};

/// Immutable.
class RunFolder {
 public:
  RunFolder(std::filesystem::path path, RunConfig config, Access access)
      : path_(std::move(path)), files_(path_, access), config_(std::move(config)) {}

  const std::filesystem::path& path() const noexcept { return path_; }
  const RunConfig& config() const noexcept { return config_; }
  /// All that is below the folder.
  const RunFiles& files() const noexcept { return files_; }
  std::filesystem::path phase(std::string_view name) const;  ///< @throws UsageError (not_found)
  std::filesystem::path gates() const;
  std::filesystem::path pool() const;  ///< @throws UsageError (not_found) if the run has none
  std::string checkpoint(std::string_view phase, std::uint64_t step) const;

  /// @throws IoError; UsageError (not_found).
  RunListing list(std::string_view phase) const;
  /// nullopt if there is none, or it cannot be read: the next finite metric is the best then.
  std::optional<Best> best(std::string_view phase) const;
  std::vector<GateEntry> list_gates() const;

  Run as_run() const { return detail::Inside::make<Run>(std::make_shared<const RunFolder>(*this)); }
  static const RunFolder& of(const Run& run) noexcept { return *detail::Inside::folder(run); }

 private:
  void protect(std::string_view phase, const io::Folder& folder, RunListing& listing) const;
  std::filesystem::path path_;
  RunFiles files_;
  RunConfig config_;
};

/// Writes a run's configuration anew, in the format that it has. By who holds the run's lock.
/// @throws UsageError (bad_argument) for another extension, and without a phase that there is.
Run change_config(const std::filesystem::path& folder, const RunConfig& config,
                  Durability durability, Access access);

/// @throws UsageError (not_found) if the phase has none of that step.
CheckpointEntry entry_of_step(const RunFolder& run, std::string_view phase, std::uint64_t step);

/// When a file was last changed, as JournalLine has it; 0 if it is not there.
std::uint64_t modified_ns(const io::Folder& folder, const std::string& file);

/// JSON of best.meta.json.
std::string best_text(const Best& best);

/// Seconds since 1970.
std::uint64_t now_seconds();

}  // namespace thalia::store
