// Records: what a checkpoint says of itself in its metadata, and how records of earlier versions
// become those of today. docs/format/store.md, "Records".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "thalia/state/value.h"

namespace thalia {

/// From a record of one version to the next. Changes the metadata, and may refuse it.
using RecordMigration = std::function<void(Value& metadata)>;

struct RecordSchema {
  std::uint64_t version = 1;  ///< that this program writes, as the member `version_key`
  std::string version_key = "checkpoint_version";
  /// By the version that each takes: it gives the next one.
  std::map<std::uint64_t, RecordMigration> migrations{};
};

struct MigratedRecord {
  Value metadata;
  std::uint64_t from = 0;  ///< version that it had
};

/// Takes a record through every version up to the schema's; nothing is guessed. @throws
/// UnsupportedError (unsupported_version) for a version that is newer, or that no migration takes;
/// FormatError (bad_value) if it has no version, or one that is no integer; what a migration
/// throws.
MigratedRecord migrate_record(Value metadata, const RecordSchema& schema);

}  // namespace thalia
