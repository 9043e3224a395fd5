// Checkpoints in another form: deltas that become full files, and the reverse. Their states stay,
// and so does what the journal knows of them. docs/format/store.md, "Rewriting".
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "store/retention/prune.h"

namespace thalia::store {

/// Writes the state of a chain in place of its top, an entry of the phase: full, or as a delta of
/// another one. The journal says first that the file changes, and then what it is. @throws as
/// state::rewrite(): the old file is there still, and its line.
CheckpointEntry rewrite_entry(const PruneJob& job, const CheckpointEntry& entry,
                              const ChainReader& chain, const std::optional<ChainReader>& base);

/// Where a crash may have kept a line's file from being written anew: says what the file is that is
/// there. @throws IoError; as Reader::open().
void mend_line(const RunFolder& run, std::string_view phase, const JournalLine& line,
               Durability durability);

/// The newest becomes full, each older one a delta of the next newer; those that the run left
/// behind keep their bases. @param is_needed of a file: a save under way makes a delta of it.
/// @throws UsageError (wrong_state) for one that is to be written, and what opening it throws,
/// before anything is changed; the same where a follower is on
/// its way to the newest.
RebaseResult rebase_phase(const PruneJob& job, unsigned max_depth,
                          const std::function<bool(const std::string&)>& is_needed);

}  // namespace thalia::store
