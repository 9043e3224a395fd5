// CheckpointMetadata: what a checkpoint's metadata says, by the source specification's schema.
//
//   auto metadata = thalia::checkpoint_metadata(brain.metadata);
//   metadata.description = "Language learning, stage 3";
//   metadata.training_info["curriculum_stage"] = 3;
//   brain.metadata = thalia::to_value(metadata);
//
// docs/format/states.md, "Metadata".
#pragma once

#include <string>
#include <vector>

#include "thalia/growth_history.h"
#include "thalia/value.h"

namespace thalia {

/// A value type.
struct CheckpointMetadata {
  std::string version;         ///< of the format that the file was written in: "1.0.0"
  std::string thalia_version;  ///< of the library that wrote it
  std::string created;         ///< ISO 8601, UTC: "2025-12-07T14:30:00Z"
  std::string description;
  std::vector<std::string> tags;
  std::vector<GrowthEvent> growth_history;
  Value training_info = Value::object();  ///< total_epochs, best_loss, curriculum_stage, dataset, …
  Value hardware = Value::object();       ///< device, gpu_model, precision, …
  Value custom = Value::object();         ///< the user's
  /// Members that the schema does not know, and those whose value is of another kind than it says,
  /// in their order.
  Value other = Value::object();

  friend bool operator==(const CheckpointMetadata&, const CheckpointMetadata&) = default;
};

/// Tolerant: nothing has to be there, and nothing is lost. @throws FormatError (limit_exceeded)
/// for a history of more than kMaxGrowthEvents.
CheckpointMetadata checkpoint_metadata(const Value& metadata);
/// Complete: every member of the schema is there, those of `other` after it. @throws UsageError
/// (duplicate) where `other` has a member of the schema that would be written twice.
Value to_value(const CheckpointMetadata& metadata);

/// Seconds since 1970 as the schema writes times: "2025-12-06T05:46:40Z".
std::string iso_time(std::uint64_t seconds);

}  // namespace thalia
