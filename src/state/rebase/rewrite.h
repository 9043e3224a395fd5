// A file of a chain in another form under its own name. docs/format/deltas.md, "Rebasing".
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "thalia/state/delta.h"

namespace thalia::state {

struct RewrittenFile {
  std::uint64_t bytes = 0;
  unsigned depth = 0;
};

/// What is in quantized tensors would be lost: a delta has the elements that come out of their
/// codes, and so has the full file of one. @throws UnsupportedError that names the first.
void require_rewritable(const ChainReader& chain);

/// Before it becomes the base of what has a base of its own so far. A tensor that two files have by
/// the same hash is taken from the base unread: where that is damaged, the last whole copy would
/// go. Reads all files of the chain. @throws IntegrityError, FormatError; CancelledError.
void require_whole(const ChainReader& chain, const std::stop_token& cancel);

/// Writes the state of a chain in place of the chain's own file: full, or as an exact delta of
/// `base`. It says that it was saved when the old one was, and has frames around it where that has.
/// NAME.sha256 is written anew where the options ask for it or there is one.
/// @param save its compression is that of a full file. @param pack as of DeltaOptions.
/// @throws as state::save_state() and write_delta(): the old file is there still.
RewrittenFile rewrite(const ChainReader& chain, const std::optional<ChainReader>& base,
                      const SaveOptions& save, bool pack);

}  // namespace thalia::state
