// The metadata of a checkpoint of a brain, and the growth history in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/options.h"
#include "thalia/state/value.h"

namespace thalia {

// The growth history: what a network gained and lost while it was trained, as the metadata of a
// checkpoint tells it. docs/format/states.md, "Growth history".

/// One event. What the text does not say is nullopt or empty. Read from any of the three shapes
/// that were ever written, written in one.
struct GrowthEvent {
  /// "growth", "pruning", or what the text has; found by the other members if it has none.
  std::string type = "growth";
  std::optional<std::uint64_t> step{};  ///< training steps done when it happened
  std::string region{};                 ///< or pathway
  std::string reason{};
  std::optional<std::int64_t> neurons_added{};
  std::optional<std::int64_t> synapses_added{};
  std::optional<std::uint64_t> neurons_removed{};
  std::optional<std::uint64_t> synapses_pruned{};
  std::string safety_level{};                    ///< of a pruning: "conservative"
  std::optional<double> importance_threshold{};  ///< of a pruning
  std::string timestamp{};                       ///< as the text has it, ISO 8601 as a rule
  std::string component_type{};                  ///< "region", "pathway"
  std::string event_type{};                      ///< of an event of the third shape: "add_neurons"
  std::optional<std::uint64_t> old_size{};       ///< neurons before
  std::optional<std::uint64_t> new_size{};       ///< and after
  std::string metrics_before_json{};             ///< JSON objects, without white space
  std::string metrics_after_json{};
  /// Members that no field above holds, in their order: keys, and values as JSON texts. Known keys
  /// with a value of another kind are among them.
  std::vector<std::pair<std::string, std::string>> other{};
  /// An element of the history that is no object, as JSON text; all else is unset then.
  std::string not_an_object_json{};

  friend bool operator==(const GrowthEvent&, const GrowthEvent&) = default;
};

/// Longer histories are refused with FormatError (limit_exceeded).
inline constexpr std::size_t kMaxGrowthEvents = 1'000'000;

/// Whether something was taken away: the type says pruning, or it has pruned or removed members.
bool is_pruning(const GrowthEvent& event);
/// Neurons more than before: neurons_added less neurons_removed, or from the sizes where neither is
/// known; 0 where nothing is.
std::int64_t neuron_change(const GrowthEvent& event) noexcept;

/// The events of the member `growth_history` of a metadata text, in its order; none where the text
/// is empty, or the member is absent or null. What an event does not hold, or holds as something
/// unexpected, is no error. @throws FormatError: the text is no JSON object, passes a limit, or the
/// member is neither array nor null.
std::vector<GrowthEvent> parse_growth_history(std::string_view metadata_json,
                                              const ReadLimits& limits = {});

/// One event as a JSON object of the shape of docs/format/format.md: step, region, neurons_added,
/// reason, type, then what else is known, then the other members.
std::string growth_event_json(const GrowthEvent& event);
/// The same of all, as a JSON array.
std::string growth_history_json(std::span<const GrowthEvent> events);

/// The metadata with the event at the end of its history. Other members keep their order and
/// meaning, earlier events their tokens; white space goes. An empty text is an object without
/// members. @throws FormatError as parse_growth_history().
std::string append_growth_event(std::string_view metadata_json, const GrowthEvent& event,
                                const ReadLimits& limits = {});

// CheckpointMetadata: what a checkpoint's metadata says, by the source specification's schema.
//
//   auto metadata = thalia::checkpoint_metadata(brain.metadata);
//   metadata.description = "Language learning, stage 3";
//   metadata.training_info["curriculum_stage"] = 3;
//   brain.metadata = thalia::to_value(metadata);
//
// docs/format/states.md, "Metadata".

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

/// The prefixes of the brains of an ensemble, in its order; none where it is no ensemble.
/// docs/format/states.md, "Ensembles". @throws FormatError (bad_value) for a `thalia_ensemble` that
/// breaks its rules; UnsupportedError (unsupported_version).
std::vector<std::string> ensemble_prefixes(const Value& metadata);

/// Seconds since 1970 as the schema writes times: "2025-12-06T05:46:40Z".
std::string iso_time(std::uint64_t seconds);

}  // namespace thalia
