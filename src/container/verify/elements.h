// Elements that their type does not allow.
#pragma once

#include "format/tensor.h"
#include "thalia/bytes.h"
#include "thalia/dtype.h"

namespace thalia::container {

/// True of types that do not take every code: bool and ternary.
bool has_illegal_codes(DType dtype) noexcept;

/// Checks every element of `elements`, whole bytes of the tensor's type. @throws FormatError.
void check_elements(const format::TensorEntry& entry, ByteSpan elements);

/// Checks the bits behind the last element of a dense tensor of a packed type. @param tail the
/// tensor's last bytes, one or more. @throws FormatError.
void check_unused_bits(const format::TensorEntry& entry, ByteSpan tail);

}  // namespace thalia::container
