// How a state in memory becomes tensors of a file, and back. docs/format/states.md, "States".
#pragma once

#include <cstdint>

#include "thalia/options.h"

namespace thalia {

/// How the tensors of a state are stored.
enum class SparseStorage {
  automatic,  ///< dense ones of more than 100 elements, more than 90 % of them zeros, as csr or coo
              ///< where that is smaller; loading gives dense ones back
  as_is,
  dense,
  csr,  ///< matrices; others as they are
  coo,  ///< all but those of rank 0
};

struct StateLoadOptions {
  /// Tensors that were stored sparse or in another element type come back as they were saved; else
  /// as they are stored.
  bool restore = true;
  InputOptions input{};  ///< the limits
  Work work{};           ///< threads that convert elements, and the stop
};

}  // namespace thalia
