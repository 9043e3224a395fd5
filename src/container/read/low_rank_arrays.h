// The payload of a low_rank_delta. docs/format/deltas.md, "low_rank_delta".
#pragma once

#include "codec/lossy/low_rank.h"
#include "format/low_rank.h"
#include "format/tensor.h"
#include "io/memory/allocation_limit.h"
#include "thalia/types.h"

namespace thalia::container {

/// The factors that the logical bytes of a tensor of rank 2 hold. Every field, width and parameter
/// is checked before it is used; the factors count in `budget`. @throws FormatError.
codec::LowRankFactors read_low_rank(const format::TensorEntry& entry, ByteSpan logical,
                                    io::MemoryBudget& budget);

}  // namespace thalia::container
