// What growth_chart() is made of, from a file of any format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "cli/draw/growth_chart.h"
#include "thalia/delta.h"
#include "thalia/growth_history.h"

namespace thalia::cli {

struct FileGrowth {
  std::vector<GrowthEvent> events{};  ///< none where the metadata have no history
  std::vector<RegionSize> regions{};
  std::uint64_t training_steps = 0;
};

/// Reads no payload. @throws what opening the file throws; FormatError as parse_growth_history().
FileGrowth growth_of(const std::filesystem::path& path, ChainOptions options);

}  // namespace thalia::cli
