// Reads a pickle without running it: the opcodes of protocols 2 to 5 that Python's pickler and
// torch write, over a stack of values. What a name stands for is in symbols.h.
#pragma once

#include <utility>

#include "formats/pickle/builder.h"
#include "formats/pickle/value.h"
#include "io/memory/allocation_limit.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::formats::pt {

/// `pickle` must outlive the graph. Work and memory grow with the length of the pickle alone.
/// @throws FormatError; UnsupportedError for names and opcodes that are not known.
Graph read_pickle(ByteSpan pickle, PickleName name, io::MemoryBudget& budget);
/// The same as a call of its own.
inline Graph read_pickle(ByteSpan pickle, PickleName name = {}, const ReadLimits& limits = {}) {
  io::MemoryBudget budget(limits, pickle.size());
  return read_pickle(pickle, std::move(name), budget);
}

}  // namespace thalia::formats::pt
