#include "formats/source/lost_metadata.h"

#include <fmt/format.h>

#include "formats/source/list_names.h"

namespace thalia::formats {

void add_lost_metadata(std::vector<std::string>& losses, const SinkInput& input,
                       const std::vector<std::string>& members) {
  if (!members.empty()) {
    if (!input.is_note_only) losses.push_back(fmt::format("metadata: {}", list_names(members)));
    if (!input.types.empty())
      losses.push_back(fmt::format("types of elements, of which the codes are written: {}",
                                   list_names(input.types)));
  }
  if (input.training_steps.value_or(0) != 0) losses.emplace_back("the count of training steps");
}

}  // namespace thalia::formats
