// Payloads of an open file, one in memory at a time at most.
#pragma once

#include <cstddef>
#include <vector>

#include "interop/shared/piece_sink.h"
#include "thalia/options.h"
#include "thalia/tensor.h"

namespace thalia::interop {

/// The logical bytes of a tensor, of a quantized one its elements: in the mapping where they lie
/// there raw, else decompressed into `scratch`. @throws FormatError (limit_exceeded) before more
/// than the limit is allocated.
ByteSpan fetch_payload(const TensorView& tensor, std::vector<std::byte>& scratch,
                       const ReadLimits& limits);

/// Hands on the same in order: of a large compressed dense tensor in pieces of whole elements, some
/// MiB a thread, else at once. @throws as fetch_payload().
void visit_payload(const TensorView& tensor, std::vector<std::byte>& scratch,
                   const ReadOptions& options, const PieceSink& visit);

}  // namespace thalia::interop
