// The last act of a save: tables, checksum and header around payloads that are placed.
// docs/format/writing.md, "Commit".
#pragma once

#include "container/write/draft.h"
#include "container/write/payload_store.h"
#include "io/atomic_file.h"
#include "thalia/options.h"
#include "thalia/writer.h"

namespace thalia::container {

/// Digests the borrowed payloads that are not digested yet, writes everything that is not in the
/// file yet, the header last, syncs, and gives the file its name.
/// @param file null where it has no name: then it is neither synced nor put anywhere.
/// @return what SaveResult says, but for `seconds`. @throws IoError, UsageError.
SaveResult finalize(io::AtomicFile* file, Draft& draft, PayloadStore& store,
                    const SaveOptions& options);

}  // namespace thalia::container
