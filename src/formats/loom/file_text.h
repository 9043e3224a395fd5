// The bytes of both kinds of files, of descriptions and of payloads that come in pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "formats/loom/document.h"
#include "formats/source/piece_sink.h"

namespace thalia::formats::loom {

/// Hands on the bytes of blob i, of the length that its record says.
using EmitBlob = std::function<void(std::size_t i, const PieceSink& sink)>;

/// All of a .entity file before its blobs. Gives them their offsets. @param short_sequences
/// as in SpecWriting. @throws UsageError; UnsupportedError if that is more than a file may have.
std::string entity_start(const LoomNetwork& network, std::vector<BlobRecord>& blobs,
                         bool short_sequences);
/// A JSON checkpoint. Weights of layers are the blobs with their paths; `blobs` in any order.
void write_checkpoint(const LoomNetwork& network, const std::vector<BlobRecord>& blobs,
                      const EmitBlob& emit, const PieceSink& out);

}  // namespace thalia::formats::loom
