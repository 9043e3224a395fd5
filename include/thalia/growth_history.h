// The growth history: what a network gained and lost while it was trained, as the metadata of a
// checkpoint tells it. docs/format/states.md, "Growth history".
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

namespace thalia {

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

}  // namespace thalia
