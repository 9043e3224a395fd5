// The directory's bytes from a draft whose payloads are placed and digested. docs/format.md,
// "Directory".
#pragma once

#include <cstddef>
#include <vector>

#include "container/draft.h"
#include "thalia/format/tensor.h"

namespace thalia::container {

/// @throws UsageError (bad_argument) where names or chunks pass what the directory's u32 fields can
/// hold.
std::vector<std::byte> build_directory(const Draft& draft);

/// The 32 bytes in front of a payload; the CSR and the tensor header have the same size.
format::TensorHeader payload_header(const DraftTensor& tensor);

}  // namespace thalia::container
