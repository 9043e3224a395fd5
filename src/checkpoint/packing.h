// What the saves of BrainCheckpoint have in common: which compression a name asks for, and the
// state with its metadata as a file holds them.
#pragma once

#include <filesystem>
#include <optional>

#include "state/brain/stored_brain.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/delta.h"
#include "thalia/writer.h"

namespace thalia::checkpoint {

/// The codec of the frames that the target's name asks for around the whole file; nullopt for none.
/// @throws UsageError (bad_argument) if the name and the options contradict each other.
std::optional<Codec> wrapper_for(const std::filesystem::path& target, const SaveOptions& options);

/// The metadata of a file that is written now, with all members of the specification's schema.
Value completed_metadata(Value given, const SaveOptions& options);

/// A writer that was told everything of the state, which it borrows: in frames where the target's
/// name asks for them. @throws as Writer; UsageError as wrapper_for(), and for a SHA-256 of a file
/// in frames.
Writer writer_of(const state::StoredBrain& stored, const std::filesystem::path& target,
                 const SaveOptions& options);

/// The brain as a file holds it, with the metadata of the specification's schema. @throws as
/// state::store_brain().
state::StoredBrain stored_brain(const BrainState& brain, const BrainSaveOptions& options,
                                bool check_shapes = true);

/// BrainCheckpoint::save(). Without `check_shapes` it is what another format held: that is not
/// refused for its shapes, and its metadata keep the policy that they name.
BrainSaveResult save_brain(const BrainState& brain, const std::filesystem::path& target,
                           const BrainSaveOptions& options, bool check_shapes);

/// The same as any state. Shares the tensors.
StateSource state_of(const state::StoredBrain& brain);

BrainContents contents_of(const state::StoredBrain& stored, const PrecisionPolicy& policy);

/// What is known of a save before its file is written; the rest is the SaveResult.
BrainSaveResult result_of(const state::StoredBrain& stored, const std::filesystem::path& target,
                          const BrainSaveOptions& options);

/// Puts frames around a file, at the level and in the way that the options say. @return bytes
/// written. @throws as compress_checkpoint().
std::uint64_t wrap(const std::filesystem::path& plain, const std::filesystem::path& target,
                   Codec wrapper, const SaveOptions& options);

}  // namespace thalia::checkpoint
