// Small changes of a .thalia file in place: its metadata, the names of its tensors, and what of it
// is left out. Each is one commit: a crash leaves the old state or the new one.
//
//   thalia::set_in_file("run.thalia", {{"author", "Ada"}, {"training.lr", 1e-4}});
//   thalia::rename_in_file("run.thalia", "cortex/w_in", "w_thalamus");
//   thalia::remove_from_file("run.thalia", {"optimizer.*"});
//
// docs/format/writing.md, "In-place append".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/append.h"
#include "thalia/state/value.h"

namespace thalia {

/// A member of the file's metadata that is set. The key goes through objects by its dots, which are
/// made if they are missing; a member whose name is the whole key goes before that.
struct MetadataMember {
  std::string key;
  std::optional<Value> value;  ///< nullopt: the member is removed
};

struct EditFileResult {
  AppendResult append;
  /// What was renamed or removed: REGION/NAME of tensors, names of regions; keys that were set.
  std::vector<std::string> changed;
};

/// @param training_steps of the header; nullopt: as they are. @throws as Appender; UsageError
/// (bad_argument) where a part of a key is a member that is no object, (not_found) for a member to
/// remove that is not there, (bad_argument) for a value with a tensor in it.
EditFileResult set_in_file(const std::filesystem::path& path,
                           const std::vector<MetadataMember>& members,
                           std::optional<std::uint64_t> training_steps = {},
                           const AppendOptions& options = {});

/// A tensor gets another name in its region; where the state of a brain keeps it, it stays. All
/// tensors of the region are taken over as they are stored, its old bytes are dead.
/// @param from a path or a pattern as in a PrecisionPattern, which fits one tensor. @param to a
/// name, or REGION/NAME of the same region. @throws as Appender; UsageError (not_found, duplicate).
EditFileResult rename_in_file(const std::filesystem::path& path, std::string_view from,
                              std::string_view to, const AppendOptions& options = {});

/// Leaves out whole regions, with their connections, and tensors, also from the state of a brain.
/// What is left out is dead bytes until the file is compacted.
/// @param patterns names of regions, or patterns of tensors as in a PrecisionPattern. @throws as
/// Appender; UsageError (not_found) for one that fits nothing.
EditFileResult remove_from_file(const std::filesystem::path& path,
                                const std::vector<std::string>& patterns,
                                const AppendOptions& options = {});

}  // namespace thalia
