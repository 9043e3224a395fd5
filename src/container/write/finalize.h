// The last act of a save: tables, checksum and header around payloads that are placed.
// docs/format/writing.md, "Commit".
#pragma once

#include <cstdint>
#include <functional>

#include "container/draft/draft.h"
#include "container/write/file_pieces.h"
#include "container/write/payload_store.h"
#include "io/output/atomic_file.h"
#include "thalia/options.h"
#include "thalia/writer.h"

namespace thalia::container {

/// Takes a whole file, of `length` bytes, out of its image. @return seconds of syncs.
using ImageSink = std::function<double(const FilePieces& image, std::uint64_t length)>;

/// Digests the borrowed payloads that are not digested yet, writes everything that is not in the
/// file yet, the header last, syncs, and gives the file its name.
/// @param file null where it has no name: then it is neither synced nor put anywhere.
/// @param sink where the image is in memory alone: gets it once it is complete.
/// @return what SaveResult says, but for `seconds`. @throws IoError, UsageError.
SaveResult finalize(io::AtomicFile* file, Draft& draft, PayloadStore& store,
                    const SaveOptions& options, const ImageSink& sink = {});

}  // namespace thalia::container
