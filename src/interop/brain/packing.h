// What the saves of BrainCheckpoint have in common: which compression a name asks for, and the
// state with its metadata as a file holds them.
#pragma once

#include <filesystem>
#include <optional>

#include "model/brain/stored_brain.h"
#include "thalia/brain_checkpoint.h"

namespace thalia::interop {

/// The codec of the frames that the target's name asks for around the whole file; nullopt for none.
/// @throws UsageError (bad_argument) where the name and the options contradict each other.
std::optional<Codec> wrapper_for(const std::filesystem::path& target, const SaveOptions& options);

/// The brain as a file holds it, with the metadata of the specification's schema. @throws as
/// model::store_brain().
model::StoredBrain stored_brain(const BrainState& brain, const BrainSaveOptions& options,
                                bool check_shapes = true);

/// BrainCheckpoint::save(). Without `check_shapes`, what another format held is not refused for its
/// shapes.
BrainSaveResult save_brain(const BrainState& brain, const std::filesystem::path& target,
                           const BrainSaveOptions& options, bool check_shapes);

RoundingLoss rounding_of(const model::StoredBrain& brain);

/// What is known of a save before its file is written, and the rest of it.
BrainSaveResult result_of(const BrainState& brain, const model::StoredBrain& stored,
                          const std::filesystem::path& target, const BrainSaveOptions& options);
void complete(BrainSaveResult& result, const SaveResult& saved);

/// Puts frames around a file, at the level and in the way that the options say. @return bytes
/// written. @throws as compress_checkpoint().
std::uint64_t wrap(const std::filesystem::path& plain, const std::filesystem::path& target,
                   Codec wrapper, const SaveOptions& options);

}  // namespace thalia::interop
