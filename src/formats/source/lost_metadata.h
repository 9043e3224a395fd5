// What conversions say of metadata that a format has no place for.
#pragma once

#include <string>
#include <vector>

#include "formats/source/tensor_sink.h"

namespace thalia::formats {

/// A sentence each for members of the metadata, for the types of elements that went with them, and
/// for the training steps: of a sink that has no place for these.
void add_lost_metadata(std::vector<std::string>& losses, const SinkInput& input,
                       const std::vector<std::string>& members);

}  // namespace thalia::formats
