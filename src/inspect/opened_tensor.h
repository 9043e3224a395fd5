// One tensor as cat sees it, whichever format its file has.
#pragma once

#include <memory>
#include <string>

#include "state/tensor/sparse_entries.h"
#include "thalia/formats/file_facts.h"
#include "thalia/state/tensor_value.h"

namespace thalia::inspect {

struct OpenedTensor {
  /// @throws FormatError for bad indices of a sparse one.
  OpenedTensor(std::string region, std::string name, TensorElements elements);

  std::string region;  ///< empty where the format has none
  std::string name;
  TensorLayout layout;
  /// Reads a part densely, row-major, packed as the dtype is; one range a dimension. Holds the file
  /// open.
  SliceReader read;
  /// The entries, for csr and coo only; their tensor() has the bytes in its own encoding.
  std::shared_ptr<const state::SparseEntries> entries;
};

}  // namespace thalia::inspect
