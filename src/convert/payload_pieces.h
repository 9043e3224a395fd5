// Payloads of an open file, at most one in memory at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "formats/source/piece_sink.h"
#include "thalia/options.h"
#include "thalia/tensor.h"

namespace thalia::formats {

/// The logical bytes of a tensor, or the elements of a quantized one: in the mapping where they lie
/// there raw, else decompressed into `scratch`. @throws FormatError (limit_exceeded) before more
/// than the limit is allocated.
ByteSpan fetch_payload(const TensorView& tensor, std::vector<std::byte>& scratch,
                       const ReadLimits& limits);

/// Hands on the same bytes in order: those of a large compressed dense tensor in pieces of whole
/// elements, some MiB for each thread, all others at once. @throws as fetch_payload().
void visit_payload(const TensorView& tensor, std::vector<std::byte>& scratch,
                   const ReadOptions& options, const PieceSink& visit);

}  // namespace thalia::formats
