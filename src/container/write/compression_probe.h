// SaveOptions::automatic_codec: whether compressing makes a save faster, found out by trying.
// docs/design.md, "Compress where it pays".
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "container/write/draft.h"
#include "thalia/options.h"

namespace thalia::container {

/// What a codec did to a sample.
struct Trial {
  Codec codec;
  int level;
  double ratio;             ///< raw by stored bytes
  double bytes_per_second;  ///< raw bytes, on one thread
};

/// The trial with which a save is the fastest; nullopt where none is faster than storing by a
/// twentieth. Compressing overlaps with writing, so a save takes as long as the slower of both.
/// @param target_speed bytes a second that reach the target.
std::optional<Trial> fastest(std::span<const Trial> trials, double target_speed, unsigned threads);

/// Names the codec where the options do not: store, or where they ask for an automatic one that and
/// its level, or store. Samples borrowed payloads that are not compressed yet; where the sample
/// shrinks, measures the target with a few MiB written to the save's own file, of which nothing
/// remains. @throws IoError.
void settle_compression(SaveOptions& options, const Draft& draft, int fd,
                        const std::filesystem::path& path);

}  // namespace thalia::container
