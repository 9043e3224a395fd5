// The directory's bytes from a plan whose payloads are placed and digested. docs/format/format.md,
// "Directory".
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "container/plan/file_plan.h"
#include "format/tensor.h"

namespace thalia::container {

/// The section, complete but for digests that were not known yet.
struct Directory {
  std::vector<std::byte> bytes;
  std::uint64_t tensors_offset;        ///< of the table of tensor entries, in `bytes`
  std::vector<std::uint32_t> tensors;  ///< of the plan, in the order of that table

  /// Takes CRC-32 and content hash of all tensors from the plan.
  void set_digests(const FilePlan& plan);
};

/// @throws UsageError (bad_argument) if names or chunks pass what the directory's u32 fields can
/// hold.
Directory build_directory(const FilePlan& plan);

/// The 32 bytes before a payload; the CSR and the tensor header have the same size.
format::TensorHeader payload_header(const TensorPlan& tensor);

}  // namespace thalia::container
