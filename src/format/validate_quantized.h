// The side data of a quantized tensor against the rules of docs/format/format.md, "quantized". No
// allocation but for an error; every check runs before the value is used to find anything else.
#pragma once

#include <cstdint>

#include "format/quantized.h"
#include "format/tensor.h"

namespace thalia::format {

/// What a quantized tensor's side data says, and what its entry has to say then. The entry is one
/// that validate_tensor_entry() accepted. @throws FormatError.
void validate_quantized_tensor(const QuantizedSideData& side, std::uint64_t side_offset,
                               const TensorEntry& entry, std::uint64_t entry_offset);

}  // namespace thalia::format
