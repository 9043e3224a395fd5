// A state as a full file, tensor by tensor and each in pieces. docs/format/deltas.md, "Resolving".
#pragma once

#include <filesystem>

#include "container/plan/check_options.h"
#include "thalia/state/delta.h"
#include "thalia/writer.h"

namespace thalia::state {

/// Writes the state to `target` and puts it in place as every save does. @throws as Writer; what
/// the state's sources throw.
SaveResult save_state(const StateSource& state, const std::filesystem::path& target,
                      const container::CheckedOptions& save);

/// Writes it into an empty file that is open for writing, without syncing. `name` is for messages.
SaveResult save_state(const StateSource& state, int fd, const std::filesystem::path& name,
                      const SaveOptions& save);

/// write_delta() into `place`, of a file that will be at `target` with frames around it.
DeltaResult write_delta_at(const StateSource& state, const ChainReader& base,
                           const std::filesystem::path& place, const std::filesystem::path& target,
                           const DeltaOptions& options);
DeltaResult write_delta_at(const StateSource& state, const SavedState& base,
                           const std::filesystem::path& place, const std::filesystem::path& target,
                           const DeltaOptions& options);
/// The same into an empty file that is open for writing, without syncing.
DeltaResult write_delta_at(const StateSource& state, const ChainReader& base, int fd,
                           const std::filesystem::path& target, const DeltaOptions& options);

}  // namespace thalia::state
