// How far the training was, by what metadata of any program say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace thalia::inspect {

struct TrainingProgress {
  std::optional<std::uint64_t> steps{};
  std::string steps_member{};  ///< where they are: "global_step", "trainer_state.global_step"
  std::optional<double> epoch{};
};

/// Looks for training_steps, training_step, global_step, step and ss_steps, and for epoch and
/// ss_epoch: numbers, or texts of numbers, members of the object or of an object in it, also of one
/// that is there as a text; also of what {"format":NAME,NAME:{…}} has under the name. Empty
/// if there are none, or the text is no JSON object.
TrainingProgress training_progress(std::string_view metadata_json);

}  // namespace thalia::inspect
