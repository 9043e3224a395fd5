// From one version of the format to another: a new file, the old one stays.
//
//   thalia::MigrateResult done = thalia::migrate("old.thalia", "new.thalia", {1, 0});
//   const auto losses =
//       thalia::migrate("new.thalia", "old.thalia", {0, 1}, {.across_major = true}).losses;
//
// docs/format/format.md, "Versions".
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/version.h"

namespace thalia {

struct Migration {
  bool possible = false;
  bool lossy = false;  ///< the target has no place for some of what a source may hold
  /// True where nobody has to ask for it beyond naming the target: to the same version or a newer
  /// one. Otherwise MigrateOptions::across_major.
  bool automatic = false;
  std::string reason;  ///< one sentence
};

/// Between 0.1 and 1.0, and from each to itself. Files of other minor versions of these are read
/// too. Any thread.
Migration can_migrate(const FormatVersion& from, const FormatVersion& to);

struct MigrateOptions {
  /// Called once before anything is written, with MigrateResult::losses if there are any. What
  /// it throws ends the migration.
  std::function<void(const std::vector<std::string>& losses)> on_losses{};
  /// Down across a major version, with what it loses.
  bool across_major = false;
  ChainOptions chain{};  ///< of the input
  /// For a 1.0 target, whose timestamp is by default the source's; durability counts for all.
  SaveOptions save{};
};

struct MigrateResult {
  FormatVersion from;
  FormatVersion to;
  std::vector<std::string> losses;    ///< what the target has no place for, one sentence each
  std::vector<std::string> warnings;  ///< about the source
  std::uint32_t tensors = 0;
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  double seconds = 0;
};

/// Writes the state of `source` to `target`, whole or not at all, as a file of another version. A
/// target whose name ends in .zst or .lz4 is compressed as a whole.
/// @throws UnsupportedError (unsupported_version) where can_migrate() says no, with its reason;
/// (unsupported_feature) for what neither version has a place for, naming it, and for a delta;
/// UsageError (bad_argument) if it is not automatic and was not asked for, or where source and
/// target are one file; IoError, FormatError, IntegrityError.
MigrateResult migrate(const std::filesystem::path& source, const std::filesystem::path& target,
                      const FormatVersion& target_version, const MigrateOptions& options = {});

}  // namespace thalia
