// What writing a delta needs of a chain besides its public side.
#pragma once

#include "model/delta/file_chain.h"
#include "thalia/delta.h"

namespace thalia {

struct DeltaAccess {
  static const model::FileChain& files(const ChainReader& reader) noexcept;
};

}  // namespace thalia
