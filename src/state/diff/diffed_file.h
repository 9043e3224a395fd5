// A file whose tensors are compared: its own tables, or those of the state that a chain makes up.
#pragma once

#include "state/diff/structure.h"
#include "thalia/reader.h"
#include "thalia/state/delta.h"
#include "thalia/state/diff.h"

namespace thalia::state {

/// Borrows both.
struct DiffedFile {
  const Reader& reader;
  const ChainReader* chain = nullptr;  ///< if the state is compared, of a delta too

  FactsOf facts() const;
};

/// What `facts` says of the view, with what reads it, which keeps the files open. `limits` are
/// borrowed.
ComparedTensor compared_tensor(const DiffedFile& file, const TensorView& view,
                               const TensorFacts& facts, const ReadLimits& limits);

}  // namespace thalia::state
