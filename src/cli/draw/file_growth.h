// The picture of a file's growth history: of any format.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cli/draw/svg.h"
#include "inspect/file_facts.h"
#include "thalia/delta.h"
#include "thalia/growth_history.h"

namespace thalia::cli {

struct GrowthPicture {
  std::string svg;
  std::size_t regions;
};

/// `events` are those of the file's metadata; what its regions have now it reads from the file, and
/// no payload. @throws what opening the file throws.
GrowthPicture growth_picture(const inspect::FileFacts& facts, std::span<const GrowthEvent> events,
                             ReadOptions options, const std::string& heading, SvgPlace place);

}  // namespace thalia::cli
