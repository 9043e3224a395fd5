// The picture of a file's growth history: of any format.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cli/report/svg.h"
#include "thalia/formats/any_file.h"
#include "thalia/state/metadata.h"

namespace thalia::cli {

struct GrowthPicture {
  std::string svg;
  std::size_t regions;
};

/// @param file as it is stored. @param events those of its metadata.
GrowthPicture growth_picture(const AnyFile& file, std::span<const GrowthEvent> events,
                             std::uint64_t training_steps, const std::string& heading,
                             SvgPlace place);

}  // namespace thalia::cli
