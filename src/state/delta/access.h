// What the library needs of a chain besides its public side.
#pragma once

#include "io/memory/allocation_limit.h"
#include "state/delta/file_chain.h"
#include "thalia/state/delta.h"

namespace thalia {

struct DeltaAccess {
  static const state::FileChain& files(const ChainReader& reader) noexcept;
  /// As reader.read(tensor); what it allocates counts in the budget, beside what a call has counted
  /// before.
  static Tensor read(const ChainReader& reader, const TensorView& tensor,
                     std::shared_ptr<io::MemoryBudget> budget);
};

}  // namespace thalia
