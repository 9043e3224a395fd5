// SaveOptions::automatic_codec: whether compressing makes a save faster, found out by trying.
// docs/contribute/design.md, "Compress where it pays".
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "container/plan/file_plan.h"
#include "thalia/options.h"

namespace thalia::container {

/// What a codec did to a sample.
struct Trial {
  Codec codec;
  int level;
  double ratio;             ///< raw by stored bytes
  double bytes_per_second;  ///< raw bytes, on one thread
};

/// The trial with which a save is fastest; nullopt if none saves a twentieth of the time of
/// storing. Compressing overlaps with writing, so a save takes as long as the slower of the two.
/// @param target_speed bytes a second that reach the target.
std::optional<Trial> fastest(std::span<const Trial> trials, double target_speed, unsigned threads);

/// Sets the codec where the options name none: store, unless they ask for an automatic one and
/// another codec is faster. Samples borrowed payloads that are not compressed yet. If the samples
/// shrink, a few MiB are written to the save's own file to measure the target; nothing of them
/// remains. @throws IoError.
void choose_codec(SaveOptions& options, const FilePlan& plan, int fd,
                  const std::filesystem::path& path);

}  // namespace thalia::container
