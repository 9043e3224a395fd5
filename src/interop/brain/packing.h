// What the saves of BrainCheckpoint have in common: which compression a name asks for, and the
// state with its metadata as a file holds them.
#pragma once

#include <filesystem>
#include <optional>

#include "model/brain/stored_brain.h"
#include "thalia/brain_checkpoint.h"

namespace thalia::interop {

/// What a save is to put around the file and into it.
struct Packing {
  std::optional<format::Codec> wrapper;  ///< frames around the whole
  std::optional<format::Codec> chunks;   ///< nullopt: automatic
};

/// @throws UsageError (bad_argument) where the name and the option contradict each other.
Packing packing_for(const std::filesystem::path& target, BrainCompression compression);

/// The brain as a file holds it, with the metadata of the specification's schema. @throws as
/// model::store_brain().
model::StoredBrain stored_brain(const BrainState& brain, const BrainSaveOptions& options,
                                bool check_shapes = true);

/// BrainCheckpoint::save(). What another format held is not refused for its shapes.
BrainSaveResult save_brain(const BrainState& brain, const std::filesystem::path& target,
                           const BrainSaveOptions& options, bool check_shapes);

PrecisionStatistics statistics_of(const model::StoredBrain& brain);

/// Puts frames around a file, at the level and in the way that the options say. @return bytes
/// written. @throws as compress_checkpoint().
std::uint64_t wrap(const std::filesystem::path& plain, const std::filesystem::path& target,
                   format::Codec wrapper, const BrainSaveOptions& options);

}  // namespace thalia::interop
