// What the library needs of a chain besides its public side.
#pragma once

#include "model/delta/file_chain.h"
#include "thalia/delta.h"

namespace thalia {

struct DeltaAccess {
  static const model::FileChain& files(const ChainReader& reader) noexcept;
  /// A reader of bytes that are at hand.
  static Reader reader_over(std::shared_ptr<const detail::OpenFile> file);
};

}  // namespace thalia
