// The tensors of a .thalia file as those of a format without regions.
#pragma once

#include <string>
#include <vector>

#include "interop/convert/precision_run.h"
#include "thalia/convert.h"
#include "thalia/reader.h"
#include "thalia/safetensors.h"

namespace thalia::interop {

struct FlatExport {
  std::vector<SafetensorsTensor> tensors;  ///< as they will be stored; without bytes
  std::vector<TensorView> views;           ///< of the same positions
  std::vector<std::string> regions;        ///< empty of connections
};

/// Of the tensor with all its elements, as a flat format holds it.
TensorSpec dense_spec_of(const TensorView& view);

/// Names every tensor, and notes what the format `to` cannot hold. @throws UnsupportedError for a
/// tensor that it cannot hold.
FlatExport plan_flat_export(const Reader& reader, FileFormat to, const ConvertOptions& options,
                            PrecisionRun& precision, std::vector<std::string>& losses);

}  // namespace thalia::interop
